package webhookapi

import (
	_ "embed" // the description
	"net/http"
)

// Description is openapi.yaml: what the API takes and answers, in OpenAPI 3.1.
//
//go:embed openapi.yaml
var Description []byte

func (a *api) description(w http.ResponseWriter, r *http.Request) error {
	if err := query(r).err(); err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/yaml")
	_, err := w.Write(Description)
	_ = err // a caller that left gets no answer
	return nil
}
