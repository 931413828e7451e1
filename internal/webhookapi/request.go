package webhookapi

import (
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// maxBody bounds bodies that are no events, in bytes.
const maxBody = 64 << 10

const contentJSON = "application/json"

// readBody reads the whole body, at most limit bytes of it.
func readBody(w http.ResponseWriter, r *http.Request, limit int64) ([]byte, error) {
	if r.ContentLength > limit {
		return nil, bodyTooLarge(limit)
	}
	text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, limit))
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return nil, bodyTooLarge(limit)
	case err != nil:
		return nil, newProblem(http.StatusBadRequest, "unreadable", "Body could not be read", "it ended before its end, or came too slowly: send it again")
	}
	return text, nil
}

func bodyTooLarge(limit int64) *Problem {
	return newProblem(http.StatusRequestEntityTooLarge, "too-large", "Body too large", fmt.Sprintf("at most %d bytes are taken here", limit))
}

// mediaType returns the body's type, one of those allowed.
func mediaType(r *http.Request, allowed ...string) (string, error) {
	given := r.Header.Get("Content-Type")
	got, _, err := mime.ParseMediaType(given)
	if err != nil || !slices.Contains(allowed, got) {
		return "", newProblem(http.StatusUnsupportedMediaType, "wrong-content-type", "Content type not taken",
			fmt.Sprintf("Content-Type is %q: use %s", given, strings.Join(allowed, " or ")))
	}
	return got, nil
}

// bodyObject reads a body that is a JSON object.
func bodyObject(w http.ResponseWriter, r *http.Request, types ...string) (object, error) {
	if _, err := mediaType(r, append([]string{contentJSON}, types...)...); err != nil {
		return nil, err
	}
	text, err := readBody(w, r, maxBody)
	if err != nil {
		return nil, err
	}
	return parseObject(text)
}

// optionalObject is bodyObject for requests that need no body.
func optionalObject(w http.ResponseWriter, r *http.Request) (object, error) {
	if r.ContentLength == 0 {
		return object{}, nil
	}
	return bodyObject(w, r)
}

// params are the parameters of a query.
type params struct {
	values url.Values
	faults []FieldError
}

// query reads the parameters of a request. Those that the route does not have are refused.
func query(r *http.Request, known ...string) *params {
	values, err := url.ParseQuery(r.URL.RawQuery)
	p := &params{values: values}
	if err != nil {
		p.faults = append(p.faults, FieldError{"", "the query cannot be read: percent-encode what is special in it"})
	}
	for name, given := range values {
		switch {
		case !slices.Contains(known, name):
			detail := "is unknown: this path has no parameters"
			if len(known) > 0 {
				detail = "is unknown: parameters are " + strings.Join(known, ", ")
			}
			p.faults = append(p.faults, FieldError{name, detail})
		case len(given) > 1:
			p.faults = append(p.faults, FieldError{name, "is given twice"})
		}
	}
	return p
}

func (p *params) fault(name, detail string) { p.faults = append(p.faults, FieldError{name, detail}) }

// err returns all that is wrong.
func (p *params) err() error {
	if len(p.faults) == 0 {
		return nil
	}
	slices.SortFunc(p.faults, func(a, b FieldError) int { return strings.Compare(a.Field, b.Field) })
	return invalidFields(p.faults...)
}

func (p *params) text(name string) string { return p.values.Get(name) }

// truth reads true or false; not given means false.
func (p *params) truth(name string) bool {
	switch text := p.text(name); text {
	case "", "false":
	case "true":
		return true
	default:
		p.fault(name, fmt.Sprintf("is %q: use true or false", text))
	}
	return false
}

// time reads RFC 3339; not given means the zero time.
func (p *params) time(name string) time.Time {
	text := p.text(name)
	if text == "" {
		return time.Time{}
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		p.fault(name, fmt.Sprintf("is %q: use a time such as 2006-01-02T15:04:05Z", text))
	}
	return t
}

// Sizes of pages.
const (
	defaultLimit = 100
	maxLimit     = 1000
)

// limit reads how many items a page may have.
func (p *params) limit() int {
	text := p.text("limit")
	if text == "" {
		return defaultLimit
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > maxLimit {
		p.fault("limit", fmt.Sprintf("is %q: use 1 to %d", text, maxLimit))
		return defaultLimit
	}
	return n
}

// revision reads If-Match: the revision that the endpoint must still have, 0 for whatever it has.
func revision(r *http.Request) (int64, error) {
	given := r.Header.Values("If-Match")
	if len(given) == 0 || len(given) == 1 && given[0] == "*" {
		return 0, nil
	}
	text, ok := strings.CutPrefix(given[0], `"`)
	text, closed := strings.CutSuffix(text, `"`)
	n, err := strconv.ParseInt(text, 10, 64)
	if len(given) > 1 || !ok || !closed || err != nil || n < 1 {
		return 0, invalid("If-Match", "is no ETag of an endpoint: send one as it was received, with its quotes")
	}
	return n, nil
}

// unconditional refuses a condition where it could not be kept.
func unconditional(r *http.Request) error {
	if len(r.Header.Values("If-Match")) > 0 {
		return invalid("If-Match", "is not looked at by this path, which changes one thing only: leave it out")
	}
	return nil
}

func etag(revision int64) string { return `"` + strconv.FormatInt(revision, 10) + `"` }
