package stored_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"operetta.dev/engine/crd"
	"operetta.dev/engine/stored"
	"sigs.k8s.io/yaml"
)

// server is as much of an API server as a check asks: the resources of one kind.
type server struct {
	t *testing.T

	mu sync.Mutex
	// specs are those of the resources, by namespace/name.
	specs map[string]map[string]any
	// refuse returns an error for a request of a path; nil refuses none.
	refuse func(path, continued string) *apierrors.StatusError
	// requests are the paths that were asked for, and largest is the largest page.
	requests []string
	largest  int
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	path := strings.TrimPrefix(r.URL.Path, "/apis/example.com/")
	s.requests = append(s.requests, path)
	from := r.URL.Query().Get("continue")
	if s.refuse != nil {
		if wrong := s.refuse(path, from); wrong != nil {
			wrong.ErrStatus.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
			s.respond(w, int(wrong.ErrStatus.Code), wrong.ErrStatus)
			return
		}
	}
	version, rest, _ := strings.Cut(path, "/")
	parts := strings.Split(rest, "/")
	if len(parts) == 4 {
		name := parts[1] + "/" + parts[3]
		if s.specs[name] == nil {
			s.respond(w, http.StatusNotFound, apierrors.NewNotFound(schema.GroupResource{}, name).ErrStatus)
			return
		}
		s.respond(w, http.StatusOK, s.resource(version, name))
		return
	}
	names := slices.Sorted(maps.Keys(s.specs))
	if len(parts) == 3 {
		names = slices.DeleteFunc(names, func(n string) bool { return !strings.HasPrefix(n, parts[1]+"/") })
	}
	limit, err := strconv.Atoi(r.URL.Query().Get("limit"))
	if err != nil {
		s.t.Errorf("a list without a limit: %s", r.URL)
	}
	at, _ := strconv.Atoi(from)
	end := min(len(names), at+limit)
	page := map[string]any{"apiVersion": "example.com/" + version, "kind": "ThingList", "metadata": map[string]any{"resourceVersion": "1"}}
	if end < len(names) {
		page["metadata"] = map[string]any{"resourceVersion": "1", "continue": strconv.Itoa(end)}
	}
	var items []any
	for _, n := range names[at:end] {
		items = append(items, s.resource(version, n))
	}
	page["items"] = items
	s.largest = max(s.largest, len(items))
	s.respond(w, http.StatusOK, page)
}

func (s *server) resource(version, name string) map[string]any {
	namespace, name, _ := strings.Cut(name, "/")
	return map[string]any{
		"apiVersion": "example.com/" + version, "kind": "Thing", "metadata": map[string]any{"namespace": namespace, "name": name, "uid": "u-" + name, "labels": map[string]any{"a": "b"}},
		"spec": s.specs[namespace+"/"+name], "status": map[string]any{"phase": "Ready", "gone": "x"},
	}
}

func (s *server) respond(w http.ResponseWriter, code int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	if err := json.NewEncoder(w).Encode(v); err != nil {
		s.t.Error(err)
	}
}

func (s *server) access(t *testing.T, namespaces ...string) stored.Access {
	t.Helper()
	h := httptest.NewServer(s)
	t.Cleanup(h.Close)
	client, err := dynamic.NewForConfig(&rest.Config{Host: h.URL, QPS: -1})
	if err != nil {
		t.Fatal(err)
	}
	in := func(of schema.GroupVersionResource, namespace string) stored.Resources {
		return client.Resource(of).Namespace(namespace)
	}
	return stored.Access{In: in, Namespaces: namespaces}
}

// definition returns a definition of version v1 whose spec has some fields.
func definition(t *testing.T, fields string) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	out := &apiextensionsv1.CustomResourceDefinition{}
	text := strings.ReplaceAll(`
metadata: {name: things.example.com}
spec:
  group: example.com
  names: {plural: things, kind: Thing}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, properties: {apiVersion: {type: string}, kind: {type: string}, metadata: {type: object}, spec: {type: object, FIELDS}, status: {type: object, properties: {phase: {type: string}}}}}}
status: {storedVersions: [v1]}
`, "FIELDS", fields)
	if err := yaml.UnmarshalStrict([]byte(text), out); err != nil {
		t.Fatal(err)
	}
	return out
}

const before = `properties: {old: {type: string}, size: {type: integer, maximum: 9}, list: {type: array, items: {type: object, properties: {a: {type: string}, b: {type: string}}}}}`

func spec(more ...any) map[string]any {
	out := map[string]any{"size": 5, "list": []any{map[string]any{"a": "x"}, map[string]any{"a": "secret-value", "b": "y"}}}
	for i := 0; i < len(more); i += 2 {
		out[more[i].(string)] = more[i+1]
	}
	return out
}

func TestTheFirstResourceIsNamedThatWouldLoseSomething(t *testing.T) {
	t.Parallel()
	const list = `list: {type: array, items: {type: object, properties: {a: {type: string}, b: {type: string}}}}`
	for name, tc := range map[string]struct {
		reason, next string
		specs        map[string]map[string]any
		// field and why are what is found, or "".
		resource, field, why string
	}{
		"Used":     {"it would be dropped", `properties: {size: {type: integer, maximum: 9}, ` + list + `}`, map[string]map[string]any{"home/a": spec(), "home/b": spec("old", "x"), "home/c": spec("old", "y")}, "home/b", "spec.old", "the field would be dropped"},
		"Unused":   {"nobody has it", `properties: {size: {type: integer, maximum: 9}, ` + list + `}`, map[string]map[string]any{"home/a": spec()}, "", "", ""},
		"None":     {"there are no resources", `properties: {size: {type: integer, maximum: 9}, ` + list + `}`, nil, "", "", ""},
		"Within":   {"the element is named", `properties: {old: {type: string}, size: {type: integer, maximum: 9}, list: {type: array, items: {type: object, properties: {a: {type: string}}}}}`, map[string]map[string]any{"home/a": spec()}, "home/a", "spec.list[1].b", "the field would be dropped"},
		"Retyped":  {"it could not be written any more", `properties: {old: {type: integer}, size: {type: integer, maximum: 9}, ` + list + `}`, map[string]map[string]any{"home/a": spec("old", "x")}, "home/a", "spec.old", "the value would be refused: Invalid value"},
		"Required": {"it has none", `required: [old], properties: {old: {type: string}, size: {type: integer, maximum: 9}, ` + list + `}`, map[string]map[string]any{"home/a": spec("old", "x"), "home/b": spec()}, "home/b", "spec.old", "the value would be refused: Required value"},
		"Given":    {"all have it", `required: [old], properties: {old: {type: string}, size: {type: integer, maximum: 9}, ` + list + `}`, map[string]map[string]any{"home/a": spec("old", "x")}, "", "", ""},
		"Default":  {"the API server fills it in", `required: [old], properties: {old: {type: string, default: x}, size: {type: integer, maximum: 9}, ` + list + `}`, map[string]map[string]any{"home/a": spec()}, "", "", ""},
		"Bound":    {"it is beyond", `properties: {old: {type: string}, size: {type: integer, maximum: 4}, ` + list + `}`, map[string]map[string]any{"home/a": spec("size", 3), "home/b": spec()}, "home/b", "spec.size", "less than or equal to 4"},
		"BoundMet": {"all are within", `properties: {old: {type: string}, size: {type: integer, maximum: 5}, ` + list + `}`, map[string]map[string]any{"home/a": spec()}, "", "", ""},
		"Already":  {"the present definition refuses it as well, since it was accepted once", `properties: {old: {type: string}, size: {type: integer, maximum: 8}, ` + list + `}`, map[string]map[string]any{"home/a": spec("size", 12)}, "", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &server{t: t, specs: tc.specs}
			err := new(stored.Checker).Check(t.Context(), s.access(t), definition(t, before), definition(t, tc.next))
			loss, is := errors.AsType[*stored.LossError](err)
			switch {
			case tc.field == "":
				if err != nil {
					t.Errorf("%s: %v", tc.reason, err)
				}
				return
			case !is:
				t.Fatalf("%s: %v", tc.reason, err)
			}
			if loss.Resource.String() != tc.resource || loss.Field != tc.field || !strings.Contains(loss.Why, tc.why) || loss.Kind != "Thing" || loss.UID == "" {
				t.Errorf("%s: %+v", tc.reason, loss)
			}
			if !strings.Contains(err.Error(), "kubectl annotate crd things.example.com --overwrite operetta.dev/accepted-loss="+crd.LossDigest(definition(t, tc.next))) || strings.Contains(err.Error(), "secret-value") {
				t.Errorf("the message is %q", err)
			}
		})
	}
}

func TestNothingIsReadUnlessADefinitionIsNarrower(t *testing.T) {
	t.Parallel()
	narrow := `properties: {size: {type: integer}}`
	accepted := definition(t, before)
	accepted.Annotations = map[string]string{crd.AcceptedLossAnnotation: crd.LossDigest(definition(t, narrow))}
	other := definition(t, before)
	other.Annotations = map[string]string{crd.AcceptedLossAnnotation: crd.LossDigest(definition(t, before))}
	for name, tc := range map[string]struct {
		reason        string
		present, next *apiextensionsv1.CustomResourceDefinition
		reads         bool
	}{
		"Same":     {"no resource can lose anything", definition(t, before), definition(t, before), false},
		"Wider":    {"no resource can lose anything", definition(t, before), definition(t, strings.Replace(before, "maximum: 9", "maximum: 10", 1)), false},
		"Bound":    {"a resource may be beyond it", definition(t, before), definition(t, strings.Replace(before, "maximum: 9", "maximum: 8", 1)), true},
		"More":     {"no resource can lose anything", definition(t, `properties: {size: {type: integer, maximum: 9}}`), definition(t, before), false},
		"Accepted": {"an administrator has accepted that", accepted, definition(t, narrow), false},
		"Another":  {"an administrator has accepted something else", other, definition(t, narrow), true},
	} {
		s := &server{t: t, specs: map[string]map[string]any{"home/a": spec("old", "x")}}
		err := new(stored.Checker).Check(t.Context(), s.access(t), tc.present, tc.next)
		if got := len(s.requests) > 0; got != tc.reads {
			t.Errorf("%s: %s: requests %q, %v", name, tc.reason, s.requests, err)
		}
	}
}

func TestManyResourcesAreReadInPagesAndOnceIfNothingChanges(t *testing.T) {
	t.Parallel()
	const many = 10_000
	s := &server{t: t, specs: map[string]map[string]any{}}
	for i := range many {
		s.specs[fmt.Sprintf("home/r-%05d", i)] = spec()
	}
	s.specs["home/r-09999"] = spec("old", "x")
	access, checker, next := s.access(t), &stored.Checker{}, definition(t, strings.Replace(before, "old: {type: string}, ", "", 1))
	check := func() error {
		s.requests = nil
		return checker.Check(t.Context(), access, definition(t, before), next)
	}
	if err := check(); err == nil || len(s.requests) != many/100 || s.largest > 100 {
		t.Errorf("%d requests, the largest page has %d: %v", len(s.requests), s.largest, err)
	}
	if err := check(); err == nil || len(s.requests) != 1 {
		t.Errorf("nothing has changed, and there are %d requests: %v", len(s.requests), err)
	}
	s.specs["home/r-09999"] = spec()
	if err := check(); err != nil || len(s.requests) != many/100+1 {
		t.Errorf("it was mended, and there are %d requests: %v", len(s.requests), err)
	}
	s.specs["home/r-00000"] = spec("old", "x")
	if err := check(); err == nil || len(s.requests) != 1 {
		t.Errorf("the first one has it, and there are %d requests: %v", len(s.requests), err)
	}
}

func TestWhatCannotBeLookedAtIsNotInstalled(t *testing.T) {
	t.Parallel()
	resource := schema.GroupResource{Group: "example.com", Resource: "things"}
	refuse := func(at string, by *apierrors.StatusError) func(string, string) *apierrors.StatusError {
		return func(path, _ string) *apierrors.StatusError {
			if path == at {
				return by
			}
			return nil
		}
	}
	expired := func(times int) func(string, string) *apierrors.StatusError {
		return func(_, from string) *apierrors.StatusError {
			if from == "" || times == 0 {
				return nil
			}
			times--
			return apierrors.NewResourceExpired("too old")
		}
	}
	forbidden := apierrors.NewForbidden(resource, "", errors.New("no"))
	for name, tc := range map[string]struct {
		reason     string
		refuse     func(string, string) *apierrors.StatusError
		namespaces []string
		// want is the resource that is named, "nothing" if it is installed, or what is said.
		want string
	}{
		"Forbidden":    {"nobody knows what they have", refuse("v1/things", forbidden), nil, "its resources cannot be looked at: things.example.com is forbidden"},
		"OwnNamespace": {"the namespaces of the operator are looked at", refuse("v1/things", forbidden), []string{"home", "away"}, "Thing away/b"},
		"OtherOnly":    {"the operator may not see the others", refuse("v1/things", forbidden), []string{"home"}, "nothing"},
		"Webhook":      {"a conversion that fails may fail for ever", refuse("v1/things", apierrors.NewInternalError(errors.New("conversion webhook failed"))), nil, "conversion webhook failed"},
		"Expired":      {"the list begins anew", expired(1), nil, "Thing away/b"},
		"Always":       {"it does not do so for ever", expired(100), nil, "too old"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &server{t: t, specs: map[string]map[string]any{}, refuse: tc.refuse}
			for i := range 150 {
				s.specs[fmt.Sprintf("aaa/r-%03d", i)] = spec()
			}
			s.specs["home/a"], s.specs["away/b"] = spec(), spec("old", "x")
			err := new(stored.Checker).Check(t.Context(), s.access(t, tc.namespaces...), definition(t, before), definition(t, strings.Replace(before, "old: {type: string}, ", "", 1)))
			_, is := errors.AsType[*stored.LossError](err)
			if tc.want == "nothing" && err != nil || tc.want != "nothing" && (!is || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("%s: %v, want %q", tc.reason, err, tc.want)
			}
		})
	}
	fails := &server{t: t, refuse: refuse("v1/things", apierrors.NewInternalError(errors.New("conversion webhook failed")))}
	elsewhere := definition(t, before)
	elsewhere.Status.StoredVersions = []string{"v2"}
	if err := new(stored.Checker).Check(t.Context(), fails.access(t), elsewhere, definition(t, `properties: {}`)); err != nil || len(fails.requests) == 0 {
		t.Errorf("nothing is stored in the version, and who converts is about to begin: %v", err)
	}
	s := &server{t: t, refuse: refuse("v1/things", apierrors.NewServiceUnavailable("not now"))}
	err := new(stored.Checker).Check(t.Context(), s.access(t), definition(t, before), definition(t, `properties: {}`))
	if _, is := errors.AsType[*stored.LossError](err); is || !apierrors.IsServiceUnavailable(err) {
		t.Errorf("an API server that is away decides nothing: %v", err)
	}
}

func TestAVersionThatIsNotServedIsReadInTheStoredOneUnlessSomebodyConverts(t *testing.T) {
	t.Parallel()
	two := func(fields string) *apiextensionsv1.CustomResourceDefinition {
		d := definition(t, before)
		d.Spec.Versions[0].Name = "v2"
		old := definition(t, fields).Spec.Versions[0]
		old.Name, old.Served, old.Storage = "v1", false, false
		d.Spec.Versions = append(d.Spec.Versions, old)
		d.Status.StoredVersions = []string{"v1", "v2"}
		return d
	}
	for name, tc := range map[string]struct{ reason, strategy, says string }{
		"Nobody":   {"it is the same resource in both", "None", "Thing home/a: spec.old: the field would be dropped (version v1)"},
		"Somebody": {"nobody knows what it is in the other one", "Webhook", "run operetta crd migrate things.example.com first"},
	} {
		s := &server{t: t, specs: map[string]map[string]any{"home/a": spec("old", "x")}}
		present := two(before)
		present.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.ConversionStrategyType(tc.strategy)}
		err := new(stored.Checker).Check(t.Context(), s.access(t), present, two(strings.Replace(before, "old: {type: string}, ", "", 1)))
		if err == nil || !strings.Contains(err.Error(), tc.says) {
			t.Errorf("%s: %s: %v, want %q", name, tc.reason, err, tc.says)
		}
	}
}
