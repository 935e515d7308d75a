package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"operetta.dev/engine/crd"
	"operetta.dev/engine/object"
)

// thingsWith returns a definition of things whose spec has some fields, each a text.
func thingsWith(fields ...string) *apiextensionsv1.CustomResourceDefinition {
	out := numberedDefinition("")
	spec := map[string]apiextensionsv1.JSONSchemaProps{}
	for _, f := range fields {
		spec[f] = apiextensionsv1.JSONSchemaProps{Type: "string"}
	}
	out.Spec.Scope = apiextensionsv1.NamespaceScoped
	out.Spec.Names.Kind = "Thing"
	out.Spec.Versions[0].Storage = true
	out.Spec.Versions[0].Schema = &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
		Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"spec": {Type: "object", Properties: spec}},
	}}
	out.Status.StoredVersions = []string{"v1"}
	return out
}

// thingServer is an API server that has things, and serves lists of them in pages of two.
type thingServer struct {
	t      *testing.T
	things []map[string]any
	// refusal is the status of each answer, 0 for none.
	refusal int
	// refused is the namespace that refusal is for, "" for all.
	refused string

	mu sync.Mutex
	// asked are the requests: the path, and who has sent them.
	asked []string
}

func (s *thingServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.asked = append(s.asked, strings.TrimSpace(r.URL.Path+" "+r.Header.Get("Impersonate-User")))
	s.mu.Unlock()
	if s.refusal != 0 && strings.Contains(r.URL.Path, s.refused) {
		w.WriteHeader(s.refusal)
		respond(s.t, w, "", metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure, Code: int32(s.refusal), Reason: map[int]metav1.StatusReason{
			http.StatusForbidden: metav1.StatusReasonForbidden, http.StatusNotFound: metav1.StatusReasonNotFound, http.StatusInternalServerError: metav1.StatusReasonInternalError,
		}[s.refusal], Message: "no"})
		return
	}
	first := 0
	if _, err := fmt.Sscan(r.URL.Query().Get("continue"), &first); err != nil {
		first = 0
	}
	next := min(first+2, len(s.things))
	meta := map[string]any{"resourceVersion": "1"}
	if next < len(s.things) {
		meta["continue"] = fmt.Sprint(next)
	}
	respond(s.t, w, "", map[string]any{"apiVersion": "example.com/v1", "kind": "ThingList", "metadata": meta, "items": s.things[first:next]})
}

func thing(name string, spec map[string]any) map[string]any {
	return map[string]any{"apiVersion": "example.com/v1", "kind": "Thing", "metadata": map[string]any{"namespace": "home", "name": name}, "spec": spec}
}

func TestADefinitionThatResourcesWouldLoseFieldsByIsRefused(t *testing.T) {
	t.Parallel()
	const all = "/apis/example.com/v1/things"
	precious := []map[string]any{thing("a", map[string]any{"new": "x"}), thing("b", map[string]any{"old": "x", "older": "y"}), thing("c", nil), thing("d", map[string]any{"old": "z"})}
	both, onlyNew := thingsWith("old", "older", "new"), thingsWith("new")
	two := both.DeepCopy()
	two.Spec.Versions = append(two.Spec.Versions, *two.Spec.Versions[0].DeepCopy())
	two.Spec.Versions[1].Name, two.Spec.Versions[1].Storage = "v0", false
	two.Status.StoredVersions = []string{"v0", "v1"}
	two.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.WebhookConverter}
	accepted, otherwise := both.DeepCopy(), both.DeepCopy()
	accepted.Annotations = map[string]string{crd.DropsAnnotation: crd.DropsDigest(both, onlyNew)}
	otherwise.Annotations = map[string]string{crd.DropsAnnotation: crd.DropsDigest(both, thingsWith())}
	newer, older := both.DeepCopy(), onlyNew.DeepCopy()
	newer.Annotations, older.Annotations = map[string]string{crd.DefinitionsAnnotation: "3"}, map[string]string{crd.DefinitionsAnnotation: "2"}
	for name, tc := range map[string]struct {
		reason        string
		present, next *apiextensionsv1.CustomResourceDefinition
		things        []map[string]any
		namespaces    object.Namespaces
		refusal       int
		want          string
		asked         []string
	}{
		"the same":           {"nothing is asked", both, both, precious, nil, 0, "", nil},
		"more":               {"nothing is asked either", onlyNew, both, precious, nil, 0, "", nil},
		"less, and unused":   {"all pages are read", both, onlyNew, []map[string]any{precious[0], precious[2], precious[0]}, nil, 0, "", []string{all, all}},
		"less, and used":     {"the first is named with its fields, and no other page is read", both, onlyNew, precious, nil, 0, "Thing home/b has spec.old, spec.older, which would be dropped; others may have such fields, too", []string{all}},
		"accepted":           {"an administrator has said so", accepted, onlyNew, precious, nil, 0, "", nil},
		"another accepted":   {"that was another definition", otherwise, onlyNew, precious, nil, 0, "would be dropped", []string{all}},
		"a newer engine":     {"its definition stays", newer, older, precious, nil, 0, "", nil},
		"an older engine":    {"its definition is replaced", older, newer, precious, nil, 0, "", nil},
		"some namespaces":    {"an operator may not list others", both, onlyNew, precious[:1], object.Namespaces{"blue", "red"}, 0, "", []string{"/apis/example.com/v1/namespaces/blue/things", "/apis/example.com/v1/namespaces/red/things"}},
		"as an account":      {"who serves them may read them", crd.WithAccount(both, "home/robot"), onlyNew, nil, nil, 0, "", []string{all + " system:serviceaccount:home:robot"}},
		"may not be listed":  {"such an operator serves none of them", both, onlyNew, precious, nil, http.StatusForbidden, "", []string{all}},
		"one refused":        {"the next one is looked at", both, onlyNew, precious, object.Namespaces{"blue", "red"}, http.StatusForbidden, "Thing home/b has spec.old, spec.older, which would be dropped", []string{"/apis/example.com/v1/namespaces/blue/things", "/apis/example.com/v1/namespaces/red/things"}},
		"not served yet":     {"the path of a version may come later", both, onlyNew, precious, nil, http.StatusNotFound, "", []string{all}},
		"no answer":          {"it is tried again", both, onlyNew, precious, nil, http.StatusInternalServerError, "looking for resources that lose fields", []string{all}},
		"converted by us":    {"the webhook may be that of a process which waits for the definition", two, onlyNew, precious, nil, http.StatusInternalServerError, "", []string{all}},
		"nothing stored yet": {"there is no resource", thingsNotStored(both), onlyNew, precious, nil, 0, "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &thingServer{t: t, things: tc.things, refusal: tc.refusal}
			if len(tc.namespaces) > 0 {
				s.refused = tc.namespaces[0]
			}
			server := httptest.NewServer(s)
			defer server.Close()
			err := fieldCheck{&rest.Config{Host: server.URL}, tc.namespaces, logr.Discard()}.check(t.Context(), tc.present, tc.next)
			if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("%s: got %v", tc.reason, err)
			}
			if isRefusal := strings.Contains(tc.want, "dropped"); isRefusal != apierrors.IsInvalid(err) {
				t.Errorf("%s: it is refused as invalid: %v", tc.reason, !isRefusal)
			}
			if diff := cmp.Diff(tc.asked, s.asked); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func thingsNotStored(d *apiextensionsv1.CustomResourceDefinition) *apiextensionsv1.CustomResourceDefinition {
	out := d.DeepCopy()
	out.Status.StoredVersions = nil
	return out
}

// The message has the command that accepts it, and no value: one may be a password.
func TestTheMessageOfDroppedFieldsSaysWhatToDo(t *testing.T) {
	t.Parallel()
	spec := map[string]any{}
	for _, f := range []string{"a", "b", "c", "d", "e"} {
		spec[f] = "opensesame"
	}
	s := &thingServer{t: t, things: []map[string]any{thing("safe", spec)}}
	server := httptest.NewServer(s)
	defer server.Close()
	present, next := thingsWith("a", "b", "c", "d", "e"), thingsWith()
	err := fieldCheck{&rest.Config{Host: server.URL}, nil, logr.Discard()}.check(t.Context(), present, next)
	const want = `CustomResourceDefinition.apiextensions.k8s.io "things.example.com" is invalid: spec.versions[0].schema.openAPIV3Schema: Forbidden: ` +
		`Thing home/safe has spec.a, spec.b, spec.c and 2 more, which would be dropped; others may have such fields, too; take the fields out of the resources, or accept that they are lost: ` +
		`kubectl annotate crd things.example.com --overwrite operetta.dev/accepted-drops=`
	if err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Fatalf("got %v, want %s", err, want)
	}
	present.Annotations = map[string]string{crd.DropsAnnotation: err.Error()[len(want):]}
	if err := (fieldCheck{&rest.Config{Host: server.URL}, nil, logr.Discard()}).check(t.Context(), present, next); err != nil {
		t.Errorf("accepted as it says: %v", err)
	}
	if !slices.Equal(s.asked, []string{"/apis/example.com/v1/things"}) {
		t.Errorf("it has asked for %v", s.asked)
	}
}
