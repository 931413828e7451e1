package webhookapi

import (
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/caisson-go/caisson/schedule"
	"github.com/caisson-go/caisson/webhook/endpoints"
	"github.com/caisson-go/caisson/webhook/signature"
)

func (a *api) pauseEndpoint(w http.ResponseWriter, r *http.Request) error {
	return a.changeState(w, r, func(id, reason string) (endpoints.Entry, error) {
		return a.cfg.Registry.Pause(r.Context(), id, reason)
	})
}

func (a *api) disableEndpoint(w http.ResponseWriter, r *http.Request) error {
	return a.changeState(w, r, func(id, reason string) (endpoints.Entry, error) {
		if reason == "" {
			reason = ByOperator
		}
		e, _, err := a.cfg.Registry.Disable(r.Context(), id, reason)
		return e, err
	})
}

// ByOperator is the reason of a disabled endpoint where an operator gave none.
const ByOperator = "by an operator"

// changeState reads the reason and changes the state.
func (a *api) changeState(w http.ResponseWriter, r *http.Request, to func(id, reason string) (endpoints.Entry, error)) error {
	if err := errors.Join(query(r).err(), unconditional(r)); err != nil {
		return err
	}
	o, err := optionalObject(w, r)
	if err != nil {
		return err
	}
	reason, err := o.stateReason()
	if err != nil {
		return err
	}
	e, err := to(r.PathValue("id"), reason)
	if err != nil {
		return err
	}
	return replyEndpoint(w, e)
}

func (a *api) enableEndpoint(w http.ResponseWriter, r *http.Request) error {
	if err := a.withoutBody(w, r); err != nil {
		return err
	}
	e, err := a.cfg.Registry.Enable(r.Context(), r.PathValue("id"))
	if err != nil {
		return err
	}
	return replyEndpoint(w, e)
}

func (a *api) withoutBody(w http.ResponseWriter, r *http.Request) error {
	if err := errors.Join(query(r).err(), unconditional(r)); err != nil {
		return err
	}
	o, err := optionalObject(w, r)
	if err != nil {
		return err
	}
	if len(o) > 0 {
		return invalid("", "this request takes no fields: leave the body out")
	}
	return nil
}

// DefaultWindow is how long a secret that was replaced signs beside its successor, unless somebody says otherwise.
const DefaultWindow = 24 * time.Hour

// MaxWindow is the longest that it may.
const MaxWindow = 30 * 24 * time.Hour

func (a *api) rotateSecret(w http.ResponseWriter, r *http.Request) error {
	if err := errors.Join(query(r).err(), unconditional(r)); err != nil {
		return err
	}
	o, err := optionalObject(w, r)
	if err != nil {
		return err
	}
	var secret signature.Secret
	window := DefaultWindow
	err = o.read(map[string]reader{
		"secret": parsed(&secret, signature.ParseSecret),
		"window": func(value json.RawMessage) error {
			if string(value) == "null" {
				return nil
			}
			return parsed(&window, parseWindow)(value)
		},
	})
	if err != nil {
		return err
	}
	e, err := a.cfg.Registry.RotateSecret(r.Context(), r.PathValue("id"), secret, window)
	if err != nil {
		return err
	}
	w.Header().Set("ETag", etag(e.Revision))
	return reply(w, http.StatusOK, ShowNew(e))
}

// parseWindow reads how long old secrets still sign.
func parseWindow(text string) (time.Duration, error) {
	d, err := schedule.ParseDuration(text)
	switch {
	case err != nil:
		return 0, err
	case d < 0 || d > MaxWindow:
		return 0, errors.New("must lie between 0s, which retires old secrets at once, and " + schedule.FormatDuration(MaxWindow))
	}
	return d, nil
}
