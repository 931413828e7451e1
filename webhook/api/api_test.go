package api_test

import (
	"bytes"
	"testing"

	"github.com/caisson-go/caisson/webhook/api"
)

func TestNewNamesWhatIsMissing(t *testing.T) {
	t.Parallel()
	if _, err := api.New(api.Config{}); err == nil {
		t.Error("an API without a registry")
	}
}

func TestDescription(t *testing.T) {
	t.Parallel()
	if text := api.Description(); !bytes.HasPrefix(text, []byte("openapi: 3.1")) {
		t.Errorf("it begins with %.40q", text)
	}
}
