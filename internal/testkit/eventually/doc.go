// Package eventually waits in tests for what another goroutine, process or server does. It polls, so that nothing has to be told to the test,
// and its limit is far above what a busy machine needs: it decides about failures, not about speed.
package eventually
