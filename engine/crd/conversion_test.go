package crd_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"operetta.dev/engine/crd"
	"operetta.dev/engine/crd/conform"
)

// twoVersions is the CRD of a kind with the versions v1, which is stored, v1beta1, and v1alpha1, which its package does not
// want served.
func twoVersions(t testing.TB) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	def := valid(t)
	for _, name := range []string{"v1beta1", "v1alpha1"} {
		def.Versions = append(def.Versions, crd.Version{Name: name, Spec: compile(t, "#Spec: size: int | *2"), Served: name == "v1beta1"})
	}
	out, err := crd.Generate(def)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func served(c *apiextensionsv1.CustomResourceDefinition) []string {
	var out []string
	for _, v := range c.Spec.Versions {
		if v.Served {
			out = append(out, v.Name)
		}
	}
	return out
}

func TestOnlyWhatIsConvertedIsServed(t *testing.T) {
	t.Parallel()
	url := "https://127.0.0.1:9443/convert"
	plain := twoVersions(t)
	converted := crd.WithConversion(plain, apiextensionsv1.WebhookClientConfig{URL: &url})
	for name, tc := range map[string]struct {
		reason           string
		crd              *apiextensionsv1.CustomResourceDefinition
		served, unserved []string
	}{
		"Without": {"the API server would take one spec for another", plain, []string{"v1"}, []string{"v1beta1"}},
		"With":    {"what the package does not want served stays unserved", converted, []string{"v1", "v1beta1"}, nil},
		"Twice":   {"the same again is the same", crd.WithConversion(converted, apiextensionsv1.WebhookClientConfig{URL: &url}), []string{"v1", "v1beta1"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tc.served, served(tc.crd)); diff != "" {
				t.Errorf("%s: served (-want +got):\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.unserved, crd.UnservedVersions(tc.crd)); diff != "" {
				t.Errorf("%s: not served (-want +got):\n%s", tc.reason, diff)
			}
			if err := conform.Check(tc.crd); err != nil {
				t.Errorf("the API server refuses it: %v", err)
			}
		})
	}
	single, err := crd.Generate(valid(t))
	if err != nil {
		t.Fatal(err)
	}
	if got := crd.WithConversion(single, apiextensionsv1.WebhookClientConfig{URL: &url}); got.Spec.Conversion != nil {
		t.Error("a definition of one version asks for conversions")
	}
}

func TestADefinitionThatStrandsStoredObjectsIsRefused(t *testing.T) {
	t.Parallel()
	url := "https://127.0.0.1:9443/convert"
	for name, tc := range map[string]struct {
		reason   string
		stored   []string
		converts bool
		want     string
	}{
		"New":         {"a definition that is not there yet", nil, false, ""},
		"Same":        {"objects are stored in the version that is stored", []string{"v1"}, false, ""},
		"Gone":        {"a version that objects are stored in cannot go", []string{"v0", "v1"}, true, `status.storedVersions[0]: Invalid value: "v0": objects may be stored in version v0, which the package does not have any more`},
		"Unconverted": {"the API server would take an old spec for a new one", []string{"v1beta1", "v1"}, false, `status.storedVersions[0]: Invalid value: "v1beta1": objects may be stored in version v1beta1, and no webhook converts them to v1`},
		"Converted":   {"a webhook reads what was stored before", []string{"v1beta1", "v1"}, true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			next := twoVersions(t)
			if tc.converts {
				next = crd.WithConversion(next, apiextensionsv1.WebhookClientConfig{URL: &url})
			}
			err := crd.CheckStored(&apiextensionsv1.CustomResourceDefinition{Status: apiextensionsv1.CustomResourceDefinitionStatus{StoredVersions: tc.stored}}, next)
			if tc.want == "" {
				if err != nil {
					t.Errorf("%s: %v", tc.reason, err)
				}
				return
			}
			if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s: got %v, want %s", tc.reason, err, tc.want)
			}
		})
	}
}
