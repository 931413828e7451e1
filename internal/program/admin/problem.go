package admin

import "net/http"

// Problem answers a request for the API that never comes to it, as the API answers: with a problem of RFC 9457.
func Problem(w http.ResponseWriter, status int, name, detail string) {
	write(w, status, "application/problem+json", struct {
		Type   string `json:"type"`
		Title  string `json:"title"`
		Status int    `json:"status"`
		Detail string `json:"detail"`
	}{"urn:caisson:problem:" + name, http.StatusText(status), status, detail})
}
