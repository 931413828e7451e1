package admin

import (
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
)

// handler puts the pages behind the guards.
func (s *Server) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/healthz", healthz)
	mux.Handle("/readyz", s.authenticatedOr(http.HandlerFunc(s.readyz), s.readyzForAll))
	if s.cfg.Metrics != nil {
		mux.Handle("/metrics", s.authenticated(s.cfg.Metrics))
	}
	pages := http.NewServeMux()
	pages.Handle("/", readOnly(mux))
	if s.cfg.API != nil {
		pages.Handle("/v1/", s.api())
	}
	return hardened(pages)
}

// api lets those with credentials at the API. Unlike the pages it can change things.
func (s *Server) api() http.Handler {
	if s.cfg.User == "" {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			Problem(w, http.StatusForbidden, "no-credentials", "there is no API without credentials, on the loopback neither: set admin.user and admin.password")
		})
	}
	return s.authenticatedOr(s.cfg.API, func(w http.ResponseWriter, _ *http.Request) {
		challenge(w)
		Problem(w, http.StatusUnauthorized, "unauthorized", needCredentials)
	})
}

// healthz says that the process runs. It checks nothing else.
func healthz(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusOK, map[string]string{"status": "ok"})
}

// readOnly refuses every method that could change something.
func readOnly(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			http.Error(w, "only GET is answered here", http.StatusMethodNotAllowed)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// hardened keeps browsers from guessing, framing and caching what they are shown.
func hardened(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
		h.Set("Cache-Control", "no-store")
		next.ServeHTTP(w, r)
	})
}

// authenticated asks for the credentials if there are any.
func (s *Server) authenticated(next http.Handler) http.Handler {
	return s.authenticatedOr(next, func(w http.ResponseWriter, _ *http.Request) {
		challenge(w)
		http.Error(w, needCredentials, http.StatusUnauthorized)
	})
}

const needCredentials = "user and password are required, and have to be those of admin.user and admin.password"

// challenge has browsers ask for credentials.
func challenge(w http.ResponseWriter) {
	w.Header().Set("WWW-Authenticate", `Basic realm="caisson", charset="UTF-8"`)
}

// authenticatedOr does, and lets refuse answer those who give none, or others.
func (s *Server) authenticatedOr(next http.Handler, refuse http.HandlerFunc) http.Handler {
	if s.cfg.User == "" {
		return next
	}
	wantUser, wantPassword := sha256.Sum256([]byte(s.cfg.User)), sha256.Sum256([]byte(s.cfg.Password))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, password, given := r.BasicAuth()
		// Hashes have one length, so that neither length nor content shows in the time; both are always compared.
		gotUser, gotPassword := sha256.Sum256([]byte(user)), sha256.Sum256([]byte(password))
		same := subtle.ConstantTimeCompare(gotUser[:], wantUser[:]) & subtle.ConstantTimeCompare(gotPassword[:], wantPassword[:])
		if !given || same != 1 {
			refuse(w, r)
			return
		}
		next.ServeHTTP(w, r)
	})
}
