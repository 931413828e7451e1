package webhook

import (
	"bytes"
	"compress/gzip"
	"errors"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"
)

// TestHostileBodies is not parallel, so that what it measures is its own.
func TestHostileBodies(t *testing.T) {
	const total = 500 * time.Millisecond
	chunk := make([]byte, 1<<20)
	bomb := gzipBomb(t)
	gone := make(chan string, 10) // receivers that saw the connection end
	for _, c := range []struct {
		name    string
		answer  func(w http.ResponseWriter, r *http.Request)
		status  int
		excerpt int
	}{
		{"one byte at a time for ever", func(w http.ResponseWriter, r *http.Request) {
			tick := time.NewTicker(20 * time.Millisecond)
			defer tick.Stop()
			for r.Context().Err() == nil {
				_, _ = w.Write([]byte("x"))
				_ = http.NewResponseController(w).Flush()
				<-tick.C
			}
		}, 200, -1},
		{"1 GiB", func(w http.ResponseWriter, _ *http.Request) {
			for range 1 << 10 {
				if _, err := w.Write(chunk); err != nil {
					return
				}
			}
			t.Error("1 GiB was read to its end")
		}, 200, maxExcerpt},
		{"1 GiB with an error status", func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusInternalServerError)
			for range 1 << 10 {
				if _, err := w.Write(chunk); err != nil {
					return
				}
			}
			t.Error("1 GiB was read to its end")
		}, 500, maxExcerpt},
		{"no answer", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, 0, 0},
		{"headers, then nothing", func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusAccepted)
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		}, 202, 0},
		{"10 GiB in gzip", func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Accept-Encoding") != "" {
				t.Error("we ask for compression")
			}
			w.Header().Set("Content-Encoding", "gzip")
			for range 10 << 10 {
				if _, err := w.Write(bomb); err != nil {
					return
				}
			}
		}, 200, maxExcerpt},
	} {
		t.Run(c.name, func(t *testing.T) {
			rec := newReceiver(t, func(w http.ResponseWriter, r *http.Request, _ int) {
				c.answer(w, r)
				gone <- c.name
			})
			s := newSender(t, Config{Timeouts: Timeouts{Total: total}})
			e := endpointAt("e", rec.URL)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			start := time.Now()
			r := send(t, s, e)
			took := time.Since(start)
			runtime.ReadMemStats(&after)

			if r.Status != c.status || len(r.Excerpt) > maxExcerpt || c.excerpt >= 0 && len(r.Excerpt) != c.excerpt {
				t.Errorf("status %d, %d bytes kept", r.Status, len(r.Excerpt))
			}
			if c.status == 0 && (!isTimeout(r.Err) || r.Phase != PhaseUnknown) {
				t.Errorf("%+v", r)
			}
			if grown := after.TotalAlloc - before.TotalAlloc; grown > 20<<20 {
				t.Errorf("%d MiB allocated, receiver included", grown>>20)
			} else {
				t.Logf("%d KiB allocated, receiver included, in %s", grown>>10, took.Round(time.Millisecond))
			}
			if name := <-gone; name != c.name { // the connection was closed, so the receiver's handler ended
				t.Errorf("%s ended", name)
			}
		})
	}
}

// gzipBomb is one gzip member of 1 MiB of zeros; members can follow each other.
func gzipBomb(t *testing.T) []byte {
	t.Helper()
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	if _, err := w.Write(make([]byte, 1<<20)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return packed.Bytes()
}

// TestEchoesAreHidden: receivers that repeat what they were sent do not get secrets into our logs and dead letters.
func TestEchoesAreHidden(t *testing.T) {
	t.Parallel()
	rec := newReceiver(t, func(w http.ResponseWriter, r *http.Request, _ int) {
		w.WriteHeader(http.StatusNotFound)
		_, _ = w.Write([]byte("Cannot POST " + r.URL.RequestURI() + "\n key=" + r.Header.Get("X-Api-Key") + "\x1b[31m\xff\n<b>" + r.URL.Path))
	})
	e := endpointAt("e", rec.URL+"/services/T000/hunter2?token=hunter3")
	e.Headers = map[string]string{"X-Api-Key": "hunter4-key"}
	r := send(t, newSender(t, Config{}), e)
	err := judge(r, e, noon)
	want := "endpoint answered 404 Not Found: Cannot POST [left out] key=[left out] [31m\uFFFD <b>[left out]"
	if err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

func TestErrorsHideURLs(t *testing.T) {
	t.Parallel()
	for name, e := range map[string]Endpoint{
		"refused":  endpointAt("e", "http://127.0.0.1:1/hunter2?k=hunter2"),
		"bad HTTP": endpointAt("e", newRawServer(t, cut("hello\r\n")).url+"/hunter2?k=hunter2"),
	} {
		e.Headers = map[string]string{"X-Api-Key": "hunter2"}
		r := send(t, newSender(t, Config{}), e)
		if r.Err == nil {
			t.Fatalf("%s: %+v", name, r)
		}
		if err := judge(r, e, noon); strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestQuotedEchoesAreHidden: net/http quotes what it could not read as HTTP, and a receiver may have put there what it was sent.
func TestQuotedEchoesAreHidden(t *testing.T) {
	t.Parallel()
	const path, key = "/hunter2?k=hunter3", `hunter4"key`
	for name, text := range map[string]string{
		"status line": path + " " + key + "\r\n\r\n",
		"status code": "HTTP/1.1 " + path + " OK\r\n\r\n",
		"header":      "HTTP/1.1 200 OK\r\n" + path + " " + key + "\r\n\r\n",
		"encoding":    "HTTP/1.1 200 OK\r\nTransfer-Encoding: " + key + "\r\n\r\n",
		"length":      "HTTP/1.1 200 OK\r\nContent-Length: " + path + "\r\n\r\n",
	} {
		e := endpointAt("e", newRawServer(t, cut(text)).url+path)
		e.Headers = map[string]string{"X-Api-Key": key}
		r := send(t, newSender(t, Config{}), e)
		if r.Err == nil {
			t.Fatalf("%s: %+v", name, r)
		}
		for _, err := range []error{r.Err, judge(r, e, noon)} {
			if strings.Contains(err.Error(), "hunter") || !strings.Contains(err.Error(), "[left out]") {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

// TestQuotedAnswerIsCut: net/http quotes what it could not read as HTTP.
func TestQuotedAnswerIsCut(t *testing.T) {
	t.Parallel()
	server := newRawServer(t, cut(strings.Repeat("spam", 10_000)+"\r\n\r\n"))
	e := endpointAt("e", server.url)
	r := send(t, newSender(t, Config{}), e)
	err := judge(r, e, noon)
	var delivery *deliveryError
	if !errors.As(err, &delivery) || len(err.Error()) > 500 {
		t.Errorf("%T of %d bytes", err, len(err.Error()))
	}
}
