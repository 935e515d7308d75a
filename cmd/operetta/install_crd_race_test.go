package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"testing"

	"github.com/go-logr/logr"
	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"operetta.dev/engine/crd"
)

// definitionStore is an API server that has one definition, with versions as the real one.
type definitionStore struct {
	t *testing.T

	mu      sync.Mutex
	version int
	// manager has written it last.
	manager string
	is      *apiextensionsv1.CustomResourceDefinition
	// looked is called after the definition was read, with the user who has read it.
	looked func(user string)
}

var definitionResource = schema.GroupResource{Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"}

// ServeHTTP implements http.Handler.
func (s *definitionStore) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	out, wrong := s.answer(r)
	if r.Method == http.MethodGet && s.looked != nil {
		s.looked(r.Header.Get("Authorization"))
	}
	if wrong != nil {
		w.WriteHeader(int(wrong.ErrStatus.Code))
		respond(s.t, w, "", wrong.ErrStatus)
		return
	}
	respond(s.t, w, "", out)
}

func (s *definitionStore) answer(r *http.Request) (*apiextensionsv1.CustomResourceDefinition, *apierrors.StatusError) {
	s.mu.Lock()
	defer s.mu.Unlock()
	const name = "things.example.com"
	switch {
	case r.Method == http.MethodPost:
		return nil, apierrors.NewForbidden(definitionResource, "", errors.New("the roles allow no creation that has no name"))
	case s.is == nil && r.Method != http.MethodPatch:
		return nil, apierrors.NewNotFound(definitionResource, name)
	case r.Method == http.MethodGet:
		return s.is.DeepCopy(), nil
	}
	next := &apiextensionsv1.CustomResourceDefinition{}
	if err := json.NewDecoder(r.Body).Decode(next); err != nil {
		s.t.Error(err)
	}
	// A manager takes no field from another one that says something else, unless it is told to.
	manager, forced := r.URL.Query().Get("fieldManager"), r.URL.Query().Get("force") == "true"
	if s.is != nil && !forced && manager != s.manager && next.Annotations[crd.DefinitionsAnnotation] != s.is.Annotations[crd.DefinitionsAnnotation] {
		return nil, apierrors.NewConflict(definitionResource, name, fmt.Errorf("%s owns it", s.manager))
	}
	s.manager = manager
	if was := next.ResourceVersion; was != "" && (s.is == nil || was != s.is.ResourceVersion) {
		return nil, apierrors.NewConflict(definitionResource, name, fmt.Errorf("it is not %s any more", was))
	}
	s.version++
	next.Name, next.ResourceVersion = name, strconv.Itoa(s.version)
	next.Status.Conditions = []apiextensionsv1.CustomResourceDefinitionCondition{{Type: apiextensionsv1.Established, Status: apiextensionsv1.ConditionTrue}}
	s.is = next
	return next.DeepCopy(), nil
}

// serving returns an API server that has the definition, and serves its kind.
func (s *definitionStore) serving() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", s)
	mux.Handle("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/things.example.com", s)
	things := metav1.APIResourceList{APIResources: []metav1.APIResource{{Name: "things", Kind: "Thing"}}}
	mux.HandleFunc("/apis/example.com/v1", func(w http.ResponseWriter, _ *http.Request) { respond(s.t, w, "", things) })
	none := func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusNotFound) }
	mux.HandleFunc("/api", none)
	mux.HandleFunc("/apis", func(w http.ResponseWriter, _ *http.Request) {
		respond(s.t, w, aggregatedDiscovery, apidiscoveryv2.APIGroupDiscoveryList{Items: []apidiscoveryv2.APIGroupDiscovery{{
			ObjectMeta: metav1.ObjectMeta{Name: "example.com"}, Versions: []apidiscoveryv2.APIVersionDiscovery{{
				Version: "v1", Resources: []apidiscoveryv2.APIResourceDiscovery{{Resource: "things", ResponseKind: &metav1.GroupVersionKind{Kind: "Thing"}}},
			}},
		}}})
	})
	return mux
}

// numberedDefinition returns the definition of an engine of some number.
func numberedDefinition(number string) *apiextensionsv1.CustomResourceDefinition {
	out := &apiextensionsv1.CustomResourceDefinition{
		TypeMeta: metav1.TypeMeta{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition"},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: "example.com", Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "things", Kind: "Thing"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1", Served: true}},
		},
	}
	out.Name, out.Annotations = "things.example.com", map[string]string{crd.DefinitionsAnnotation: number}
	return out
}

// Between the look at the present definition and the write, another process may have written its own.
func TestOfTwoProcessesThatInstallADefinitionAtOnceTheNewerOneWins(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ reason, present, first, second string }{
		"NoneYetAndTheOlderIsLate":   {"both have found none", "", "3", "2"},
		"NoneYetAndTheNewerIsLate":   {"both have found none", "", "2", "3"},
		"AnOlderAndTheOlderIsLate":   {"both have found that of an engine before", "1", "3", "2"},
		"AnOlderAndTheNewerIsLate":   {"both have found that of an engine before", "1", "2", "3"},
		"TheirOwnAndTheNewerIsFirst": {"a process is started anew while another version comes", "2", "3", "2"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &definitionStore{t: t}
			if tc.present != "" {
				s.is, s.version = numberedDefinition(tc.present), 1
				s.is.ResourceVersion = "1"
			}
			server := httptest.NewServer(s.serving())
			defer server.Close()
			run := func(number string) error {
				return installCRD(t.Context(), &rest.Config{Host: server.URL, BearerToken: number, ContentConfig: rest.ContentConfig{ContentType: runtime.ContentTypeJSON}}, logr.Discard(), nil, numberedDefinition(number))
			}
			// The second one looks, and then the first one does all that it has to do.
			once := sync.OnceFunc(func() {
				if err := run(tc.first); err != nil {
					t.Error(err)
				}
			})
			s.looked = func(user string) {
				if user == "Bearer "+tc.second {
					once()
				}
			}
			if err := run(tc.second); err != nil {
				t.Fatal(err)
			}
			if got := s.is.Annotations[crd.DefinitionsAnnotation]; got != "3" {
				t.Errorf("%s: the definition is that of number %s", tc.reason, got)
			}
		})
	}
}
