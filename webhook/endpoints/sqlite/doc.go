// Package sqlite is the registry of webhook endpoints in the embedded SQLite file: for the workers of one host.
//
// Guarantees, beyond those of [endpoints.Store]:
//
//   - A change of the registry survives a power cut. What workers report of endpoints joins the commits of others and waits for no disk.
//   - Several processes on one host may share the file; a revision is the order of their commits.
//   - Nothing that is secret of an endpoint is in the file in the clear, nor was it ever: it comes here sealed.
package sqlite
