package webhook_test

import (
	"fmt"

	"github.com/caisson-go/caisson/webhook"
	"github.com/caisson-go/caisson/webhook/signature"
	"github.com/caisson-go/caisson/worker"
)

// A worker that delivers, and a producer's job for it.
func ExampleSender_Register() {
	endpoints, err := webhook.NewStatic(nil, webhook.Endpoint{
		ID:      "shop",
		URL:     "https://hooks.example.com/caisson",
		Secrets: []signature.Secret{signature.NewSecret()},
		Headers: map[string]string{"X-Tenant": "42"},
	})
	if err != nil {
		panic(err)
	}
	registry := worker.NewRegistry()
	sender, err := webhook.NewSender(webhook.Config{Endpoints: endpoints})
	if err != nil {
		panic(err)
	}
	sender.Register(registry)
	defer sender.Close()

	// Each endpoint gets the limits of its own: worker.Config.Destinations.Overrides["shop"].
	for _, e := range endpoints.All() {
		fmt.Println(e.ID, *e.DestinationConfig().Concurrency)
	}

	job := webhook.NewDelivery("shop", "evt_1", []byte(`{"paid":true}`), nil)
	fmt.Println(registry.Kinds(), job.Kind, job.Destination, job.Key)
	// Output:
	// shop 3
	// [webhook.deliver] webhook.deliver shop shop:evt_1
}
