package jsonmatch

import (
	"math/big"
	"strings"
)

// sameNumber reports whether two JSON numbers have the same value. It takes time by the length of their digits, not by their size.
func sameNumber(a, b string) bool {
	if a == b {
		return true
	}
	x, y := readNumber(a), readNumber(b)
	return x.digits == y.digits && (x.digits == "" || x.negative == y.negative && x.exponent.Cmp(y.exponent) == 0)
}

// number is 0.digits x 10^exponent. digits neither begins nor ends with 0; zero has none.
type number struct {
	negative bool
	digits   string
	exponent *big.Int
}

func readNumber(s string) number {
	n := number{exponent: new(big.Int)}
	s, n.negative = strings.CutPrefix(s, "-")
	if i := strings.IndexAny(s, "eE"); i >= 0 {
		n.exponent.SetString(strings.TrimPrefix(s[i+1:], "+"), 10)
		s = s[:i]
	}
	whole, fraction, _ := strings.Cut(s, ".")
	n.digits = strings.TrimLeft(whole+fraction, "0")
	point := len(whole) - (len(whole) + len(fraction) - len(n.digits))
	n.exponent.Add(n.exponent, big.NewInt(int64(point)))
	n.digits = strings.TrimRight(n.digits, "0")
	return n
}
