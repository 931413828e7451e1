package endpointtest

import (
	"github.com/caisson-go/caisson/webhook/endpoints"
)

func secretTests() []testCase {
	return []testCase{
		{"Secret/belongs to one endpoint", testSecretTaken},
		{"Secret/one of many at once wins", testSecretRace},
		{"Secret/is free when it is given up", testSecretFreed},
	}
}

func testSecretTaken(e *env) {
	first, second := e.record(), e.record()
	first.Fingerprints = append(first.Fingerprints, []byte("one more of "+first.ID))
	e.insert(first)
	own := second.Fingerprints
	for _, taken := range first.Fingerprints {
		second.Fingerprints = [][]byte{own[0], taken}
		_, err := e.store.Insert(e.Context(), second)
		e.wantError("insert with the secret of another", err, endpoints.ErrSecretInUse)
	}
	second.Fingerprints = own
	kept := e.insert(second) // nothing was left of the refused ones
	stolen := kept
	stolen.Fingerprints, stolen.Settings = first.Fingerprints[1:], []byte("stolen")
	_, err := e.store.Update(e.Context(), stolen)
	e.wantError("update to the secret of another", err, endpoints.ErrSecretInUse)
	e.want("what was there", e.get(kept.ID), kept)
	third := e.record()
	third.Fingerprints = own
	_, err = e.store.Insert(e.Context(), third)
	e.wantError("a refused update has freed a secret", err, endpoints.ErrSecretInUse)
	kept.Fingerprints = own
	e.update(kept) // its own
}

func testSecretRace(e *env) {
	shared := []byte(e.name("shared"))
	won := e.race(8, endpoints.ErrSecretInUse, func(int) error {
		r := e.record()
		r.Fingerprints = [][]byte{shared}
		_, err := e.store.Insert(e.Context(), r)
		return err
	})
	if won != 1 {
		e.Errorf("%d endpoints have the same secret", won)
	}
}

func testSecretFreed(e *env) {
	r := e.record()
	kept := e.insert(r)
	kept.Fingerprints = [][]byte{[]byte(e.name("new"))}
	e.update(kept)
	other := e.record()
	other.Fingerprints = r.Fingerprints
	e.delete(e.insert(other))
	other.ID = e.name("endpoint")
	e.insert(other)
}
