package migration_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset/typed/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"operetta.dev/engine/migration"
)

const shops = "shops.example.com"

// server is as much of an API server as a migration asks: one definition, and the metadata of its objects.
type server struct {
	mu         sync.Mutex
	definition *apiextensionsv1.CustomResourceDefinition
	// objects are the UIDs by names.
	objects []object
	// stored counts the patches of each object that have stored it.
	stored map[string]int
	// pages are the limits of the lists.
	pages []int
	// before is called before each request, with what is asked; it may refuse it.
	before func(s *server, verb, name string) *apierrors.StatusError
}

type object struct{ name, uid string }

// newServer returns a server with objects, some of which are stored in version v1alpha1.
func newServer(n int) *server {
	s := &server{stored: map[string]int{}, before: func(*server, string, string) *apierrors.StatusError { return nil }}
	webhook := &apiextensionsv1.WebhookConversion{ClientConfig: &apiextensionsv1.WebhookClientConfig{}, ConversionReviewVersions: []string{"v1"}}
	s.definition = &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: shops, UID: "definition", Generation: 3, ResourceVersion: "1"},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: "example.com", Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "shops", Kind: "Shop"},
			Conversion: &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.WebhookConverter, Webhook: webhook},
			Versions:   []apiextensionsv1.CustomResourceDefinitionVersion{version("v1alpha1", "count"), version("v1", "replicas")},
		},
		Status: apiextensionsv1.CustomResourceDefinitionStatus{StoredVersions: []string{"v1alpha1", "v1"}},
	}
	s.definition.Spec.Versions[1].Storage = true
	for i := range n {
		s.objects = append(s.objects, object{fmt.Sprintf("shop-%04d", i), fmt.Sprint("uid-", i)})
	}
	return s
}

// version returns a version that is served, with one field.
func version(name, field string) apiextensionsv1.CustomResourceDefinitionVersion {
	return apiextensionsv1.CustomResourceDefinitionVersion{Name: name, Served: true, Schema: &apiextensionsv1.CustomResourceValidation{
		OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{field: {Type: "integer"}}},
	}}
}

// clients starts the server, and returns clients of it.
func (s *server) clients(t *testing.T) migration.Clients {
	t.Helper()
	listening := httptest.NewServer(s)
	t.Cleanup(listening.Close)
	config := &rest.Config{Host: listening.URL, QPS: -1, ContentConfig: rest.ContentConfig{ContentType: "application/json"}}
	definitions, err := apiextensions.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	objects, err := metadata.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return migration.Clients{Definitions: definitions.CustomResourceDefinitions(), Objects: objects}
}

// ServeHTTP implements http.Handler.
func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	path := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	verb, name := strings.ToLower(r.Method), path[len(path)-1]
	if path[1] == "apiextensions.k8s.io" {
		verb += " definition"
	} else if name == "shops" {
		verb, name = "list", r.URL.Query().Get("continue")
	}
	if refused := s.before(s, verb, name); refused != nil {
		answer(w, int(refused.ErrStatus.Code), refused.ErrStatus)
		return
	}
	switch verb {
	case "get definition":
		answer(w, http.StatusOK, s.definition)
	case "put definition":
		s.putStatus(w, r)
	case "list":
		s.list(w, r)
	case "patch":
		s.patch(w, r, name)
	case "get":
		s.get(w, name)
	}
}

func answer(w http.ResponseWriter, code int, body any) {
	if status, is := body.(metav1.Status); is {
		status.Kind, status.APIVersion = "Status", "v1"
		body = status
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(body) // the client finds out
}

func (s *server) putStatus(w http.ResponseWriter, r *http.Request) {
	var given apiextensionsv1.CustomResourceDefinition
	if err := json.NewDecoder(r.Body).Decode(&given); err != nil || given.ResourceVersion != s.definition.ResourceVersion {
		answer(w, http.StatusConflict, apierrors.NewConflict(schema.GroupResource{}, shops, err).ErrStatus)
		return
	}
	if r.URL.Query().Get("dryRun") == "" {
		s.definition.Status = given.Status
		s.touch()
	}
	answer(w, http.StatusOK, s.definition)
}

// touch gives the definition another resourceVersion.
func (s *server) touch() {
	version, _ := strconv.Atoi(s.definition.ResourceVersion)
	s.definition.ResourceVersion = strconv.Itoa(version + 1)
}

func (s *server) list(w http.ResponseWriter, r *http.Request) {
	limit, _ := strconv.Atoi(r.URL.Query().Get("limit"))
	from, _ := strconv.Atoi(r.URL.Query().Get("continue"))
	s.pages = append(s.pages, limit)
	to := min(from+limit, len(s.objects))
	list := metav1.PartialObjectMetadataList{TypeMeta: metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadataList"}}
	for _, o := range s.objects[from:to] {
		list.Items = append(list.Items, o.metadata())
	}
	if to < len(s.objects) {
		list.Continue, list.RemainingItemCount = strconv.Itoa(to), new(int64(len(s.objects)-to))
	}
	answer(w, http.StatusOK, list)
}

func (o object) metadata() metav1.PartialObjectMetadata {
	return metav1.PartialObjectMetadata{
		TypeMeta:   metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadata"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "home", Name: o.name, UID: types.UID(o.uid)},
	}
}

// find returns an object, and whether there is one.
func (s *server) find(name string) (object, bool) {
	for _, o := range s.objects {
		if o.name == name {
			return o, true
		}
	}
	return object{}, false
}

func (s *server) get(w http.ResponseWriter, name string) {
	o, found := s.find(name)
	if !found {
		answer(w, http.StatusNotFound, apierrors.NewNotFound(schema.GroupResource{Resource: "shops"}, name).ErrStatus)
		return
	}
	answer(w, http.StatusOK, o.metadata())
}

func (s *server) patch(w http.ResponseWriter, r *http.Request, name string) {
	var given metav1.PartialObjectMetadata
	o, found := s.find(name)
	switch err := json.NewDecoder(r.Body).Decode(&given); {
	case err != nil:
		answer(w, http.StatusBadRequest, apierrors.NewBadRequest(err.Error()).ErrStatus)
	case !found:
		s.get(w, name)
	case string(given.UID) != o.uid:
		answer(w, http.StatusConflict, apierrors.NewConflict(schema.GroupResource{Resource: "shops"}, name, nil).ErrStatus)
	default:
		s.stored[name]++
		answer(w, http.StatusOK, o.metadata())
	}
}
