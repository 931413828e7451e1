package recipes

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/caisson-go/caisson/worker"
)

// Address is looked up at a provider that allows 10 requests a second.
type Address struct {
	Customer string `json:"customer"`
	Text     string `json:"text"`
}

// Geocode shares the limits of the destination "geocoder" with every other kind that names it.
var Geocode = worker.Kind[Address]{
	Name:   "address.geocode",
	Config: worker.KindConfig{Destination: "geocoder"},
}

// Geocoder is where the provider is.
type Geocoder struct {
	Client *http.Client
	URL    string
}

// Handle looks one address up.
func (g *Geocoder) Handle(ctx context.Context, a Address) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, g.URL+"?q="+url.QueryEscape(a.Text), nil)
	if err != nil {
		return worker.Cancel(err)
	}
	res, err := g.Client.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	switch {
	case res.StatusCode == http.StatusTooManyRequests:
		return worker.RetryAfter(time.Minute, fmt.Errorf("geocoder: %s", res.Status))
	case res.StatusCode >= http.StatusBadRequest:
		return fmt.Errorf("geocoder: %s", res.Status)
	}
	return nil
}

// GeocodeFairly gives each customer limits of his own: those of destinations.default.
var GeocodeFairly = worker.Kind[Address]{
	Name:        "address.geocode-fairly",
	Destination: func(a Address) string { return "customer-" + a.Customer },
}
