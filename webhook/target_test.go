package webhook

import (
	"fmt"
	"testing"
)

// A URL that passed is remembered, one that did not is judged anew, and http needs its permission each time. The memory is bounded.
func TestTargets(t *testing.T) {
	t.Parallel()
	targets := &targets{guard: localGuard(t)}
	plain := Endpoint{URL: "http://127.0.0.1:8080/hook"}
	if _, err := targets.find(plain); err == nil {
		t.Error("http went through without permission")
	}
	plain.AllowHTTP = true
	first, err := targets.find(plain)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := targets.find(plain); err != nil || again != first {
		t.Errorf("the second time: %v, %v", again, err)
	}
	plain.AllowHTTP = false
	if _, err := targets.find(plain); err == nil {
		t.Error("http went through because it had been allowed before")
	}
	if _, err := targets.find(Endpoint{URL: "https://10.0.0.1/"}); err == nil {
		t.Error("a private address went through")
	}
	for i := range mostTargets + 10 {
		if _, err := targets.find(Endpoint{URL: fmt.Sprintf("https://hooks.example.com/%d", i)}); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(targets.known); n > mostTargets {
		t.Errorf("%d targets are remembered", n)
	}
}
