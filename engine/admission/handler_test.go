package admission_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	admissionv1 "k8s.io/api/admission/v1"
	"operetta.dev/engine/admission"
	"operetta.dev/test/inline"
	"operetta.dev/test/machine"
)

// post posts a body to a handler, and returns the response.
func post(t testing.TB, h http.Handler, edit func(*http.Request), body []byte) *httptest.ResponseRecorder {
	t.Helper()
	req := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/validate?timeout=10s", bytes.NewReader(body))
	req.Header.Set("Content-Type", "application/json")
	if edit != nil {
		edit(req)
	}
	out := httptest.NewRecorder()
	h.ServeHTTP(out, req)
	return out
}

// reviewOf returns a review of a request as an API server sends it.
func reviewOf(t testing.TB, r *admissionv1.AdmissionRequest) []byte {
	t.Helper()
	review := admissionv1.AdmissionReview{Request: r}
	review.APIVersion, review.Kind = "admission.k8s.io/v1", "AdmissionReview"
	out, err := json.Marshal(review)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestWhatIsNoReviewGetsAStatusCode(t *testing.T) {
	t.Parallel()
	log, logged := recorded()
	handler := admission.NewHandler(func(_ context.Context, r *admissionv1.AdmissionRequest) (*admissionv1.AdmissionResponse, error) {
		switch r.Name {
		case "unknown":
			return nil, errors.New("nobody knows")
		case "panic":
			panic("what is secret")
		}
		return &admissionv1.AdmissionResponse{Allowed: true}, nil
	}, log)
	t.Cleanup(func() { expectPanicWithoutValue(t, logged()) })
	named := func(name string) []byte { return reviewOf(t, &admissionv1.AdmissionRequest{UID: "1", Name: name}) }
	text := func(old, now string) []byte { return bytes.Replace(named("a"), []byte(old), []byte(now), 1) }
	for name, tc := range map[string]struct {
		reason string
		body   []byte
		edit   func(*http.Request)
		code   int
		says   string
	}{
		"Review":        {"the answer has the uid of the request", named("a"), nil, 200, `"uid":"1"`},
		"Undecided":     {"the API server then does what its configuration says", named("unknown"), nil, 503, "nobody knows"},
		"Panic":         {"a panic ends one answer, and nobody is told its value", named("panic"), nil, 503, "for a reason of its own"},
		"Get":           {"reviews are posted", nil, func(r *http.Request) { r.Method = http.MethodGet }, 405, ""},
		"ContentType":   {"a browser could send it otherwise", named("a"), func(r *http.Request) { r.Header.Set("Content-Type", "text/plain") }, 415, ""},
		"Charset":       {"a media type may have parameters", named("a"), func(r *http.Request) { r.Header.Set("Content-Type", "application/json; charset=utf-8") }, 200, ""},
		"Empty":         {"there is nothing to answer", nil, nil, 400, ""},
		"Truncated":     {"half of a review says nothing", named("a")[:40], nil, 400, ""},
		"Huge":          {"memory has a limit", append(bytes.Repeat([]byte(" "), 9<<20), '1'), nil, 413, "8388608"},
		"Nested":        {"nesting has a limit", []byte(strings.Repeat("[", 100_000)), nil, 400, ""},
		"OtherVersion":  {"no other version is spoken", text("admission.k8s.io/v1", "admission.k8s.io/v2"), nil, 400, "admission.k8s.io/v1"},
		"BetaVersion":   {"no other version is spoken", text("admission.k8s.io/v1", "admission.k8s.io/v1beta1"), nil, 400, ""},
		"OtherKind":     {"a conversion goes elsewhere", text("AdmissionReview", "ConversionReview"), nil, 400, ""},
		"NoRequest":     {"a response is no request", []byte(`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview"}`), nil, 400, "uid"},
		"NoUID":         {"the API server would take it for the answer to another one", text(`"uid":"1"`, `"uid":""`), nil, 400, "uid"},
		"StrangeTimes":  {"a time that is none is the usual one", named("a"), func(r *http.Request) { r.URL.RawQuery = "timeout=-1s" }, 200, ""},
		"EndlessTimes":  {"nobody waits for ever", named("a"), func(r *http.Request) { r.URL.RawQuery = "timeout=99999h" }, 200, ""},
		"WrongTypes":    {"a field of another type is malformed", text(`"uid":"1"`, `"uid":{}`), nil, 400, ""},
		"UnknownFields": {"a later version may have more", text(`"uid":"1"`, `"uid":"1","more":1`), nil, 200, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := post(t, handler, tc.edit, tc.body)
			if got.Code != tc.code || !strings.Contains(got.Body.String(), tc.says) || strings.Contains(got.Body.String(), "secret") {
				t.Errorf("%s: got %d %s", tc.reason, got.Code, got.Body)
			}
		})
	}
}

// recorded returns a log, and what was logged.
func recorded() (logr.Logger, func() string) {
	var mu sync.Mutex
	var out strings.Builder
	log := funcr.New(func(_, text string) {
		mu.Lock()
		defer mu.Unlock()
		fmt.Fprintln(&out, text)
	}, funcr.Options{})
	return log, func() string {
		mu.Lock()
		defer mu.Unlock()
		return out.String()
	}
}

// expectPanicWithoutValue fails the test unless a panic was logged, by its type.
func expectPanicWithoutValue(t *testing.T, logged string) {
	t.Helper()
	if !strings.Contains(logged, `"panic"="string"`) || strings.Contains(logged, "what is secret") {
		t.Errorf("the log has %s", logged)
	}
}

// TestWhoSendsNothingKeepsNobodyWaiting opens many requests whose bodies never come. Whoever can connect
// can do that.
func TestWhoSendsNothingKeepsNobodyWaiting(t *testing.T) {
	t.Parallel()
	handler := admission.NewHandler(func(context.Context, *admissionv1.AdmissionRequest) (*admissionv1.AdmissionResponse, error) {
		return &admissionv1.AdmissionResponse{Allowed: true}, nil
	}, logr.Discard())
	server := httptest.NewServer(handler)
	defer server.Close()
	for range 100 {
		conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", server.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		fmt.Fprintf(conn, "POST /validate?timeout=10s HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 8000000\r\n\r\n{")
	}
	ctx, cancel := context.WithTimeout(t.Context(), machine.Limit(5*time.Second))
	defer cancel()
	body := reviewOf(t, &admissionv1.AdmissionRequest{UID: "1", Name: "a"})
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, server.URL+"/validate?timeout=5s", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	got, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatalf("nobody answers while others are silent: %v", err)
	}
	defer got.Body.Close()
	if got.StatusCode != http.StatusOK {
		t.Errorf("got %s while others are silent", got.Status)
	}
}

func TestReviewsHaveALimitOfMemoryTogether(t *testing.T) {
	t.Parallel()
	inside, finish := make(chan struct{}), make(chan struct{})
	handler := admission.NewHandler(func(context.Context, *admissionv1.AdmissionRequest) (*admissionv1.AdmissionResponse, error) {
		inside <- struct{}{}
		<-finish
		return &admissionv1.AdmissionResponse{Allowed: true}, nil
	}, logr.Discard())
	large := reviewOf(t, &admissionv1.AdmissionRequest{UID: "1", Name: strings.Repeat("a", 7<<20)})
	codes := make(chan int)
	for range 4 {
		go func() { codes <- post(t, handler, nil, large).Code }()
		<-inside
	}
	if got := post(t, handler, nil, large); got.Code != http.StatusServiceUnavailable {
		t.Errorf("a fifth one gets %d", got.Code)
	}
	close(finish)
	for range 4 {
		if code := <-codes; code != http.StatusOK {
			t.Errorf("one of the first gets %d", code)
		}
	}
	go func() { <-inside }()
	if got := post(t, handler, nil, large); got.Code != http.StatusOK {
		t.Errorf("their memory is not returned: %d", got.Code)
	}
}

// FuzzReview sends what nobody expects to both webhooks: each answer is a review with the uid of the request,
// or the status code of an error, and none takes a process with it.
func FuzzReview(f *testing.F) {
	p := inline.Program(f, shop)
	r := resources(&reviewer{Program: p})
	handlers := []http.Handler{admission.NewHandler(r.Validate, logr.Discard()), admission.NewHandler(r.Mutate, logr.Discard())}
	for _, spec := range []string{`{}`, `{"size":9}`, `{"size":1e400}`, `{"size":null,"shelf":[{},null]}`, `{"a":{"b":[[[]]]}}`, `7`, `"\ud800"`} {
		f.Add([]byte(`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"1","operation":"CREATE","kind":{"group":"shop.example","version":"v1","kind":"Shop"},"object":{"apiVersion":"shop.example/v1","kind":"Shop","metadata":{"name":"a"},"spec":` + spec + `}}}`))
	}
	f.Add([]byte(`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"1","operation":"UPDATE","kind":{"group":"shop.example","version":"v1","kind":"Shop"},"object":{"apiVersion":"shop.example/v1","kind":"Shop","metadata":7},"oldObject":null}}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, h := range handlers {
			got := post(t, h, nil, body)
			if got.Code != http.StatusOK {
				continue
			}
			var asked, said admissionv1.AdmissionReview
			if err := json.Unmarshal(got.Body.Bytes(), &said); err != nil || said.Response == nil {
				t.Fatalf("got %s: %v", got.Body, err)
			}
			if err := json.Unmarshal(body, &asked); err != nil || asked.Request.UID != said.Response.UID {
				t.Errorf("the answer is to another request: %s", got.Body)
			}
			if !said.Response.Allowed && (said.Response.Result == nil || said.Response.Result.Message == "") {
				t.Errorf("a refusal says nothing: %s", got.Body)
			}
		}
	})
}
