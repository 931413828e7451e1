package sqlite

// Config tunes a store.
type Config struct {
	// Path of the file, created if missing. Its directory must exist, on a local disk. All that this process opens by the same path share
	// the file, such as the embedded queue and other stores. ":memory:" means a database in memory; what follows these eight characters is
	// the name by which others in this process share it. Required.
	Path string
	// Sync says which commits wait for the disk: "mixed" those of publishes and dead letters, "full" all. Beside a networked broker
	// use "full": the broker forgets a message once it is acked, so that its claim has to survive a power cut. Empty follows the file
	// if this process has it open already, else it means "mixed".
	Sync string
}
