package rights

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/engine/install"
	"operetta.dev/test/harness"
)

// bundleObject returns the ClusterServiceVersion of a bundle, or the only object of another one of its files.
func bundleObject(t *testing.T, dir, file string) *unstructured.Unstructured {
	t.Helper()
	for name, text := range filesIn(t, dir) {
		if strings.HasSuffix(name, file) {
			return objectsIn(t, []byte(text))[0]
		}
	}
	t.Fatalf("there is no %s", file)
	return nil
}

// supportedModes returns the forms of OperatorGroups that a bundle is for.
func supportedModes(t *testing.T, csv *unstructured.Unstructured) []string {
	t.Helper()
	list, _, err := unstructured.NestedSlice(csv.Object, "spec", "installModes")
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, one := range list {
		if mode := one.(map[string]any); mode["supported"] == true {
			out = append(out, mode["type"].(string))
		}
	}
	return out
}

// OLM gives an operator of some namespaces the same rights in each, and in its own: all that is printed for one of them, and nothing else.
func TestF41ABundleOfOLMIsForTheNamespacesThatItWasWrittenFor(t *testing.T) {
	t.Parallel()
	for namespaces, mode := range map[string]string{operatorNamespace: "OwnNamespace", "team-a": "SingleNamespace", "team-a,team-b": "MultiNamespace", "team-a," + operatorNamespace: "MultiNamespace"} {
		t.Run(namespaces, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			operetta(t, "install", harness.PackageDir("webapp"), "--olm", dir, "--namespace", namespaces)
			if said := verifyBundle(t, dir); strings.Contains(said, "level=error") {
				t.Errorf("the bundle is not valid:\n%s", said)
			}
			csv := bundleObject(t, dir, ".clusterserviceversion.yaml")
			if diff := cmp.Diff([]string{mode}, supportedModes(t, csv)); diff != "" {
				t.Errorf("the modes (-want +got):\n%s", diff)
			}
			got, _, _ := unstructured.NestedStringSlice(bundleObject(t, dir, install.BundleGroup).Object, "spec", "targetNamespaces")
			want := slices.Sorted(strings.SplitSeq(namespaces, ","))
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("the OperatorGroup (-want +got):\n%s", diff)
			}
			printed := map[string]int{}
			for _, object := range objectsIn(t, operetta(t, "install", harness.PackageDir("webapp"), "--crds", "leave", "--namespace", namespaces)) {
				if object.GetKind() == "Role" {
					maps.Copy(printed, counted(t, map[string][]any{"Role": object.Object["rules"].([]any)}))
				}
			}
			if diff := cmp.Diff(printed, counted(t, map[string][]any{"Role": rulesOfAccount(t, csv, "permissions")})); diff != "" {
				t.Errorf("the rules in namespaces (-operetta install +bundle):\n%s", diff)
			}
		})
	}
}

// OLM makes the Service, the certificate and the configurations of the webhooks, which only have to be described.
func TestF41ABundleOfOLMDescribesTheWebhooks(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	operetta(t, "install", harness.PackageDir("webapp"), "--olm", dir, "--webhooks")
	if said := verifyBundle(t, dir); strings.Contains(said, "level=error") {
		t.Errorf("the bundle is not valid:\n%s", said)
	}
	csv := bundleObject(t, dir, ".clusterserviceversion.yaml")
	list, _, err := unstructured.NestedSlice(csv.Object, "spec", "webhookdefinitions")
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, one := range list {
		w := one.(map[string]any)
		got[w["type"].(string)] = w["webhookPath"].(string)
		if w["deploymentName"] != deploymentsOf(t, csv)[0].GetName() || w["targetPort"] != int64(9443) {
			t.Errorf("%s leads to %v:%v", w["generateName"], w["deploymentName"], w["targetPort"])
		}
	}
	if diff := cmp.Diff(map[string]string{"ValidatingAdmissionWebhook": "/validate", "MutatingAdmissionWebhook": "/mutate", "ConversionWebhook": "/convert"}, got); diff != "" {
		t.Errorf("the webhooks (-want +got):\n%s", diff)
	}
	for _, file := range slices.Sorted(maps.Keys(filesIn(t, dir))) {
		if strings.Contains(file, "webhook") {
			t.Errorf("OLM would install %s beside its own", file)
		}
	}
	crd := bundleObject(t, dir, "webapps.example.com.customresourcedefinition.yaml")
	if service, _, _ := unstructured.NestedString(crd.Object, "spec", "conversion", "webhook", "clientConfig", "service", "name"); service != "operetta-service" {
		t.Errorf("versions are converted by the Service %q, and OLM makes operetta-service", service)
	}
	if args := argsOf(t, deploymentsOf(t, csv)[0]); !slices.Contains(args, "--webhook-cert-dir=/tmp/k8s-webhook-server/serving-certs") {
		t.Errorf("the operator takes the certificate from elsewhere: %s", args)
	}
}

// argsOf returns the arguments of the first container of a Deployment.
func argsOf(t *testing.T, u *unstructured.Unstructured) []string {
	t.Helper()
	containers, _, err := unstructured.NestedSlice(u.Object, "spec", "template", "spec", "containers")
	if err != nil || len(containers) == 0 {
		t.Fatalf("it has no container: %v", err)
	}
	out, _, err := unstructured.NestedStringSlice(containers[0].(map[string]any), "args")
	if err != nil {
		t.Fatal(err)
	}
	return out
}
