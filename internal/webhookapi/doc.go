// Package webhookapi is what the JSON API of package webhook/api and the command line share: the form of endpoints and events on their way in and
// out, the same checks and the same problems for both, and the handler itself. What it guarantees is said there.
//
// # How to read it
//
// handler.go has the routes, settings.go what an endpoint is on its way in, view.go on its way out, problem.go what errors become.
package webhookapi
