package config

// OrNone translates a number for a Config in Go. In a configuration zero means none; in such a Config, where the zero value is the default, a negative
// number does.
func OrNone[T interface{ ~int | ~int64 | ~float64 }](value T) T {
	if value == 0 {
		return -1
	}
	return value
}
