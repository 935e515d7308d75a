package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"operetta.dev/engine/controller"
)

func TestDefinitionIsInstalledOnceItsKindIsServed(t *testing.T) {
	t.Parallel()
	want := &apiextensionsv1.CustomResourceDefinition{Spec: apiextensionsv1.CustomResourceDefinitionSpec{
		Group: "example.com", Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "things", Kind: "Thing"},
		Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v0"}, {Name: "v1", Served: true}, {Name: "v2", Served: true}},
	}}
	want.Name = "things.example.com"
	established := want.DeepCopy()
	established.Status.Conditions = []apiextensionsv1.CustomResourceDefinitionCondition{{Type: apiextensionsv1.Established, Status: apiextensionsv1.ConditionTrue}}
	requests := 0
	mux := http.NewServeMux()
	mux.HandleFunc("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/things.example.com", func(w http.ResponseWriter, _ *http.Request) {
		respond(t, w, "", established)
	})
	all := apidiscoveryv2.APIGroupDiscoveryList{}
	mux.HandleFunc("/api", func(w http.ResponseWriter, _ *http.Request) {
		respond(t, w, aggregatedDiscovery, apidiscoveryv2.APIGroupDiscoveryList{})
	})
	mux.HandleFunc("/apis", func(w http.ResponseWriter, _ *http.Request) {
		kinds := []apidiscoveryv2.APIResourceDiscovery{{Resource: "things", ResponseKind: &metav1.GroupVersionKind{Kind: "Thing"}}}
		switch requests++; requests {
		case 1: // the group is not served yet
		case 2: // the kind is not served yet
			all.Items = []apidiscoveryv2.APIGroupDiscovery{{ObjectMeta: metav1.ObjectMeta{Name: "example.com"}, Versions: []apidiscoveryv2.APIVersionDiscovery{{Version: "v1"}, {Version: "v2", Resources: kinds}}}}
		case 3: // one of its versions is not
			all.Items[0].Versions[0].Resources = kinds
			all.Items[0].Versions[1].Resources = nil
		default:
			all.Items[0].Versions[1].Resources = kinds
		}
		respond(t, w, aggregatedDiscovery, all)
	})
	server := httptest.NewServer(mux)
	defer server.Close()
	if err := installCRD(t.Context(), &rest.Config{Host: server.URL}, logr.Discard(), nil, want); err != nil {
		t.Fatal(err)
	}
	if requests != 4 {
		t.Errorf("installCRD returned after %d discovery requests, but the kind is served from the fourth on", requests)
	}
}

// Another package of the group may have a short name that one has. That is no reason to end what the process does for all others.
func TestADefinitionWhoseNamesAreTakenIsAFaultOfItsPackage(t *testing.T) {
	t.Parallel()
	refused := numberedDefinition("")
	refused.Status.Conditions = []apiextensionsv1.CustomResourceDefinitionCondition{{
		Type: apiextensionsv1.NamesAccepted, Status: apiextensionsv1.ConditionFalse, Reason: "ShortNamesConflict", Message: `"db" is already in use`,
	}}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { respond(t, w, "", refused) }))
	defer server.Close()
	err := installCRD(t.Context(), &rest.Config{Host: server.URL, ContentConfig: rest.ContentConfig{ContentType: runtime.ContentTypeJSON}}, logr.Discard(), nil, numberedDefinition(""))
	if !isPackageFault(err) || !strings.Contains(err.Error(), `waiting for things.example.com to be established: "db" is already in use`) {
		t.Errorf("got %v", err)
	}
}

// A shard that follows works with the definition that whoever installs it has installed.
func TestAShardThatFollowsWaitsForFieldsOnlyIfShardZeroInstallsThem(t *testing.T) {
	t.Parallel()
	wanted := numberedDefinition("")
	wanted.Spec.Versions[0].Schema = &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
		Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"more": {Type: "string"}},
	}}
	for name, tc := range map[string]struct {
		reason, crds string
		present      bool
		says         string
	}{
		"Lacking":    {"what it writes there would be dropped", crdsApply, true, "things.example.com lacks v1.more; shard 0 installs it"},
		"Missing":    {"", crdsApply, false, "shard 0 does that"},
		"LeftToAll":  {"shard 0 serves with it, too", crdsLeave, true, ""},
		"LeftAndOut": {"no process installs it", crdsLeave, false, "with --crds=leave the operator does not install it"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &definitionStore{t: t}
			if tc.present {
				s.is = numberedDefinition("")
				s.is.Spec.Versions[0].Schema = &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object"}}
			}
			server := httptest.NewServer(s.serving())
			defer server.Close()
			o := &operator{config: &rest.Config{Host: server.URL, ContentConfig: rest.ContentConfig{ContentType: runtime.ContentTypeJSON}}, flags: runFlags{crds: tc.crds}}
			o.flags.options.Shard = controller.Shard{Index: 1, Count: 2}
			err := objectExaminer{o}.AwaitCRD(t.Context(), wanted)
			if tc.says == "" && err != nil || tc.says != "" && (err == nil || !strings.Contains(err.Error(), tc.says)) {
				t.Errorf("%s: %v, want %q", tc.reason, err, tc.says)
			}
		})
	}
}

// aggregatedDiscovery are the media type parameters of aggregated discovery.
const aggregatedDiscovery = ";g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

func respond(t *testing.T, w http.ResponseWriter, parameters string, v any) {
	t.Helper()
	w.Header().Set("Content-Type", "application/json"+parameters)
	if err := json.NewEncoder(w).Encode(v); err != nil {
		t.Error(err)
	}
}
