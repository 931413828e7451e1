// Package admin is the HTTP server that operators and orchestrators ask: /healthz, /readyz, /metrics, and an API under /v1/ if there is one.
//
// What it guarantees:
//
//   - Without credentials it listens on the loopback only: [New] refuses any other address. With credentials every page asks for them, and they are
//     compared in constant time. Only the probes of orchestrators go without: /healthz, and /readyz, which then says whether, but not why.
//   - It only shows, the API excepted. GET and HEAD are answered, every other method gets 405, so that no link and no form can change anything.
//   - The API is there for those with credentials only, also on the loopback: without user and password every request to it gets 403.
//   - /healthz speaks of the process alone and never waits for a dependency: a broker that is down must not have workers killed.
//     /readyz asks the checks and names those that fail.
//   - A slow or hanging client cannot hold the server: every read and write has a bound, and each check a context that ends.
//   - [Server.Run] returns after its listener is closed and its goroutines have ended.
package admin
