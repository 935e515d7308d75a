package admission_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"operetta.dev/engine/admission"
	"operetta.dev/engine/program"
	"operetta.dev/test/inline"
	"operetta.dev/test/machine"
)

// old is a package with two versions.
const old = `package shop

import "operetta.dev/schemas/operator"

operator.#Controller

group: "shop.example"
kind:  "Shop"
cr: spec: #Spec
#Spec: {rooms: count: int & <=100 | *2}
#Old: count: int | *2
versions: {
	v1: {spec: #Spec, storage: true}
	v1beta1: {spec: #Old, convert: v1: {
		to: {given: #Old, spec: rooms: count: given.count}
		from: {given: #Spec, spec: count: given.rooms.count}
	}}
}
`

// A converting package counts how often it is asked. The spec of some resources is beyond a limit, or panics, or is
// for nobody to say.
type converting struct {
	*program.Program

	asked atomic.Int64
}

// ConvertContext implements admission.Converter.
func (c *converting) ConvertContext(_ context.Context, of program.Conversion) (map[string]any, error) {
	c.asked.Add(1)
	switch of.Name {
	case "hangs":
		return nil, &program.LimitError{Evaluated: true, TooSlow: true, Text: "its evaluation took too long"}
	case "panics":
		panic("what is secret")
	case "busy":
		return nil, &program.UnavailableError{Err: errors.New("there is no worker")}
	}
	return c.Conversions().ConvertResource(of)
}

// conversions returns the handler of a package, and the package.
func conversions(t testing.TB) (http.Handler, *converting) {
	t.Helper()
	p := &converting{Program: inline.Program(t, old)}
	return admission.NewConversions(func(kind schema.GroupKind) admission.Converter {
		if kind != p.GroupVersionKind().GroupKind() {
			return nil
		}
		return p
	}, 2, logr.Discard()), p
}

// aShop is a resource of a version as JSON.
func aShop(version, name, spec string) string {
	return fmt.Sprintf(`{"apiVersion":"shop.example/%s","kind":"Shop","metadata":{"name":%q,"namespace":"town","uid":"u","labels":{"a":"b"},"managedFields":[{"manager":"m"}]},"spec":%s,"status":{"phase":"Ready"}}`, version, name, spec)
}

// conversion is a review of resources as JSON.
func conversion(to string, objects ...string) []byte {
	return fmt.Appendf(nil, `{"apiVersion":"apiextensions.k8s.io/v1","kind":"ConversionReview","request":{"uid":"1","desiredAPIVersion":%q,"objects":[%s]}}`, to, strings.Join(objects, ","))
}

// answerOf returns the answer of a handler to a review, which it has to give.
func answerOf(t testing.TB, h http.Handler, body []byte) *apiextensionsv1.ConversionResponse {
	t.Helper()
	got := post(t, h, nil, body)
	var review apiextensionsv1.ConversionReview
	if err := json.Unmarshal(got.Body.Bytes(), &review); err != nil || got.Code != http.StatusOK || review.Response == nil {
		t.Fatalf("got %d %s: %v", got.Code, got.Body, err)
	}
	return review.Response
}

func TestResourcesAreConvertedAndKeepAllButTheirSpecs(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason, to string
		given      []string
		want       []string
	}{
		"Up":       {"the storage version", "v1", []string{aShop("v1beta1", "a", `{"count":3}`)}, []string{aShop("v1", "a", `{"rooms":{"count":3}}`)}},
		"Down":     {"and back", "v1beta1", []string{aShop("v1", "a", `{"rooms":{"count":3}}`)}, []string{aShop("v1beta1", "a", `{"count":3}`)}},
		"Several":  {"in the same order, also with some that are there already", "v1", []string{aShop("v1beta1", "a", `{"count":3}`), aShop("v1", "b", `{"rooms":{"count":4}}`), aShop("v1beta1", "c", `{}`)}, []string{aShop("v1", "a", `{"rooms":{"count":3}}`), aShop("v1", "b", `{"rooms":{"count":4}}`), aShop("v1", "c", `{"rooms":{"count":2}}`)}},
		"NoSpec":   {"what is left out has defaults", "v1", []string{`{"apiVersion":"shop.example/v1beta1","kind":"Shop","metadata":{"name":"a"}}`}, []string{`{"apiVersion":"shop.example/v1","kind":"Shop","metadata":{"name":"a"},"spec":{"rooms":{"count":2}}}`}},
		"Nothing":  {"an API server may ask for nothing", "v1", nil, nil},
		"Deleting": {"what is being deleted is converted, too", "v1", []string{`{"apiVersion":"shop.example/v1beta1","kind":"Shop","metadata":{"name":"a","deletionTimestamp":"2026-01-01T00:00:00Z","finalizers":["x/y"]},"spec":{"count":1}}`}, []string{`{"apiVersion":"shop.example/v1","kind":"Shop","metadata":{"name":"a","deletionTimestamp":"2026-01-01T00:00:00Z","finalizers":["x/y"]},"spec":{"rooms":{"count":1}}}`}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h, _ := conversions(t)
			got := answerOf(t, h, conversion("shop.example/"+tc.to, tc.given...))
			if got.UID != "1" || got.Result.Status != metav1.StatusSuccess || len(got.ConvertedObjects) != len(tc.want) {
				t.Fatalf("%s: got %+v", tc.reason, got)
			}
			for i, want := range tc.want {
				var has, wants any
				if err := errors.Join(json.Unmarshal(got.ConvertedObjects[i].Raw, &has), json.Unmarshal([]byte(want), &wants)); err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(wants, has); diff != "" {
					t.Errorf("%s: number %d (-want +got):\n%s", tc.reason, i, diff)
				}
			}
		})
	}
}

func TestAFailedConversionNamesTheResource(t *testing.T) {
	t.Parallel()
	fine := aShop("v1beta1", "fine", `{"count":3}`)
	for name, tc := range map[string]struct {
		reason string
		body   []byte
		want   string
	}{
		"Invalid":    {"the other version has no such spec", conversion("shop.example/v1", fine, aShop("v1beta1", "large", `{"count":101}`)), "Shop town/large of version v1beta1: to version v1: "},
		"Hanging":    {"others need not guess which one it is", conversion("shop.example/v1", fine, aShop("v1beta1", "hangs", `{}`)), "Shop town/hangs of version v1beta1: to version v1: its evaluation took too long"},
		"Version":    {"a version that the package does not have", conversion("shop.example/v7", fine), "Shop town/fine of version v1beta1: to version v7: "},
		"OldVersion": {"a version that the package had", conversion("shop.example/v1", aShop("v0", "old", `{}`)), "Shop town/old of version v0: "},
		"Group":      {"a kind stays in its group", conversion("other.example/v1", fine), "cannot become one of group"},
		"NoStruct":   {"a spec may be anything", conversion("shop.example/v1", aShop("v1beta1", "text", `"text"`)), "Shop town/text of version v1beta1"},
		"NoObject":   {"an object may be anything", conversion("shop.example/v1", `7`), "number 0"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h, _ := conversions(t)
			got := answerOf(t, h, tc.body)
			if got.Result.Status != metav1.StatusFailure || !strings.Contains(got.Result.Message, tc.want) || len(got.ConvertedObjects) > 0 {
				t.Errorf("%s: got %+v, want a failure with %q", tc.reason, got, tc.want)
			}
		})
	}
}

func TestWhatIsNoConversionGetsAStatusCode(t *testing.T) {
	t.Parallel()
	fine := aShop("v1beta1", "fine", `{"count":3}`)
	for name, tc := range map[string]struct {
		reason string
		edit   func(*http.Request)
		body   []byte
		want   int
	}{
		"Get":       {"reviews are posted", func(r *http.Request) { r.Method = http.MethodGet }, conversion("shop.example/v1", fine), http.StatusMethodNotAllowed},
		"Form":      {"and are JSON", func(r *http.Request) { r.Header.Set("Content-Type", "text/plain") }, conversion("shop.example/v1", fine), http.StatusUnsupportedMediaType},
		"Broken":    {"the text ends too early", nil, conversion("shop.example/v1", fine)[:90], http.StatusBadRequest},
		"V1beta1":   {"a version of reviews that nobody has asked for", nil, bytes.Replace(conversion("shop.example/v1", fine), []byte("k8s.io/v1"), []byte("k8s.io/v1beta1"), 1), http.StatusBadRequest},
		"NoRequest": {"a review without a request", nil, []byte(`{"apiVersion":"apiextensions.k8s.io/v1","kind":"ConversionReview"}`), http.StatusBadRequest},
		"Huge":      {"more than an API server sends", nil, conversion("shop.example/v1", aShop("v1beta1", "a", `"`+strings.Repeat("a", 17<<20)+`"`)), http.StatusRequestEntityTooLarge},
		"Many":      {"more resources than a list has", nil, conversion("shop.example/v1", strings.Split(strings.Repeat("{},", 10_000)+"{}", ",")...), http.StatusRequestEntityTooLarge},
		"NoPackage": {"a kind of another operator", nil, conversion("shop.example/v1", strings.Replace(fine, "Shop", "Barn", 1)), http.StatusServiceUnavailable},
		"Busy":      {"no worker was free", nil, conversion("shop.example/v1", aShop("v1beta1", "busy", `{}`)), http.StatusServiceUnavailable},
		"Panic":     {"the next one is answered", nil, conversion("shop.example/v1", aShop("v1beta1", "panics", `{}`)), http.StatusServiceUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h, _ := conversions(t)
			got := post(t, h, tc.edit, tc.body)
			if got.Code != tc.want || strings.Contains(got.Body.String(), "secret") {
				t.Errorf("%s: got %d %s, want %d", tc.reason, got.Code, got.Body, tc.want)
			}
			if after := answerOf(t, h, conversion("shop.example/v1", fine)); after.Result.Status != metav1.StatusSuccess {
				t.Errorf("%s: the next one gets %+v", tc.reason, after)
			}
		})
	}
}

func TestAnExpensiveConversionCostsOneWorker(t *testing.T) {
	t.Parallel()
	h, p := conversions(t)
	for range 3 {
		answerOf(t, h, conversion("shop.example/v1", aShop("v1beta1", "hangs", `{"count":1}`)))
	}
	if got := p.asked.Load(); got != 1 {
		t.Errorf("it was evaluated %d times", got)
	}
	answerOf(t, h, conversion("shop.example/v1", aShop("v1beta1", "hangs", `{"count":2}`)))
	if got := p.asked.Load(); got != 2 {
		t.Errorf("a changed resource is not tried: %d", got)
	}
}

// FuzzConversion sends what nobody expects: each answer is a review with the uid of the request and as many resources, or a
// failure that says something, or the status code of an error.
func FuzzConversion(f *testing.F) {
	h, _ := conversions(f)
	for _, spec := range []string{`{}`, `{"count":101}`, `{"count":1e400}`, `{"count":null}`, `{"a":{"b":[[[]]]}}`, `7`, `"\ud800"`, `{"count":3.0}`} {
		f.Add(conversion("shop.example/v1", aShop("v1beta1", "a", spec)))
		f.Add(conversion("shop.example/v1beta1", aShop("v1", "a", spec), aShop("v1beta1", "b", spec)))
	}
	f.Add(conversion("", `{"apiVersion":"shop.example/v1","kind":"Shop","metadata":7}`, `null`, `{"kind":"List","items":[7]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		got := post(t, h, nil, body)
		if got.Code != http.StatusOK {
			return
		}
		var asked, said apiextensionsv1.ConversionReview
		if err := json.Unmarshal(got.Body.Bytes(), &said); err != nil || said.Response == nil {
			t.Fatalf("got %s: %v", got.Body, err)
		}
		if err := json.Unmarshal(body, &asked); err != nil || asked.Request.UID != said.Response.UID {
			t.Errorf("the answer is to another request: %s", got.Body)
		}
		if said.Response.Result.Status == metav1.StatusSuccess && len(said.Response.ConvertedObjects) != len(asked.Request.Objects) {
			t.Errorf("%d of %d were converted", len(said.Response.ConvertedObjects), len(asked.Request.Objects))
		}
		if said.Response.Result.Status != metav1.StatusSuccess && said.Response.Result.Message == "" {
			t.Errorf("a failure says nothing: %s", got.Body)
		}
	})
}

func TestAFailedConversionSaysOnlyWhatItKnows(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason, to, object, want string
	}{
		"NoKind":  {"a review that asks for no version names no resource", "a/b/c", aShop("v1beta1", "a", `{}`), "the desired version is not a group and a version"},
		"NotJSON": {"what is no resource has a number alone", "shop.example/v1", `7`, "number 0: it is not JSON of a resource"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h, _ := conversions(t)
			if diff := cmp.Diff(tc.want, answerOf(t, h, conversion(tc.to, tc.object)).Result.Message); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// A blocking package lets each conversion wait until the test lets it go on.
type blocking struct {
	*program.Program

	began chan string
	next  chan struct{}
}

// ConvertContext implements admission.Converter.
func (b *blocking) ConvertContext(ctx context.Context, of program.Conversion) (map[string]any, error) {
	b.began <- of.Name
	select {
	case <-b.next:
		return b.Conversions().ConvertResource(of)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func TestAReviewOfManyLetsOthersThrough(t *testing.T) {
	t.Parallel()
	const objects = 40
	p := &blocking{inline.Program(t, old), make(chan string), make(chan struct{})}
	h := admission.NewConversions(func(schema.GroupKind) admission.Converter { return p }, 1, logr.Discard())
	var many []string
	for range objects {
		many = append(many, aShop("v1beta1", "many", `{}`))
	}
	answered := make(chan int, 2)
	ask := func(objects ...string) {
		answered <- post(t, h, func(r *http.Request) { r.URL.RawQuery = "timeout=30s" }, conversion("shop.example/v1", objects...)).Code
	}
	go ask(many...)
	p.expectBegun(t) // the first one has the only slot
	go ask(strings.Replace(aShop("v1beta1", "other", `{}`), "town", "village", 1))
	before := 1
	for done := range objects {
		p.letGoOn(t)
		if p.expectBegun(t) == "other" {
			before = done + 1
		}
	}
	p.letGoOn(t)
	for range 2 {
		if code := <-answered; code != http.StatusOK {
			t.Errorf("a review got %d", code)
		}
	}
	if before >= objects {
		t.Errorf("the other review waited for all %d", before)
	}
}

// expectBegun waits until a conversion begins, and returns the name of its object.
func (b *blocking) expectBegun(t *testing.T) string {
	t.Helper()
	select {
	case name := <-b.began:
		return name
	case <-time.After(machine.Patience):
		t.Fatal("no conversion begins: the reviews have ended")
		return ""
	}
}

// letGoOn lets a conversion that has begun go on.
func (b *blocking) letGoOn(t *testing.T) {
	t.Helper()
	select {
	case b.next <- struct{}{}:
	case <-time.After(machine.Patience):
		t.Fatal("no conversion waits: the reviews have ended")
	}
}
