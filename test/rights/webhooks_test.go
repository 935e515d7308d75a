package rights

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"operetta.dev/test/harness"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// What `operetta install --webhooks` prints is applied as it is. There is no network to pods, so the API server
// calls the operator by an address in place of the Service; all else is as printed.
func TestWhatInstallPrintsServesWebhooks(t *testing.T) {
	t.Parallel()
	s := harness.NewEnv(t)
	lockWebapps(t)
	t.Cleanup(func() { removeConversion(t) })
	home := s.Namespace + "-operator"
	manifests := operetta(t, "install", harness.PackageDir("webapp"), "--namespace", s.Namespace, "--service-account", home+"/hooked", "--leader-election-id", "hooked", "--webhooks")
	// Operators of other tests apply the definition as well, without the webhook.
	apply(t, manifests, "--force-conflicts")
	objects := objectsIn(t, manifests)
	w := s.Redirect(objects, home+"/hooked")
	var deployment appsv1.Deployment
	decoded(t, objects, "Deployment", "hooked", &deployment)
	s.ActAsAccount(home + "/hooked")
	from := harness.MarkAudit(t)
	args := unpacked(t, deployment.Spec.Template.Spec, objects)
	for i, arg := range args {
		if strings.HasPrefix(arg, "--webhook-bind-address=") {
			args[i] = "--webhook-bind-address=127.0.0.1:" + w.Port
		}
	}
	s.StartOperator(append(args, "--leader-elect-namespace", home)...)
	admin := harness.NewWarned(t)
	harness.Eventually(t, "the warning about an image without a tag", func() error {
		if err := admin.Create(t.Context(), s.Webapp("asked", map[string]any{"image": "nginx"}), client.DryRunAll); err != nil {
			return err
		}
		if !strings.Contains(strings.Join(admin.Take(), "\n"), "nginx has no tag") {
			return errors.New("there is none")
		}
		return nil
	})
	expectWarnings(t, s, admin)
	cr := s.Create(s.Webapp("web", map[string]any{"image": "nginx:1.25"}))
	s.ExpectResourceReady(cr)
	apply(t, withoutWebhooks(t, objects), "--force-conflicts") // whoever installs again takes nothing away from the operator
	if secret := s.ExpectObject(harness.Object("v1", "Secret", home, "hooked-webhooks"), "to be there", harness.Exists); len(harness.Field(secret, "data").(map[string]any)) != 3 {
		t.Errorf("the Secret has the keys %v", harness.Field(secret, "data"))
	}
	s.Patch(cr, harness.Spec(map[string]any{"ingress": map[string]any{"enabled": true}, "autoscaling": map[string]any{"enabled": true}}))
	s.ExpectObject(s.Ref("Ingress", cr.GetName()), "to exist", harness.Exists)
	s.ExpectObject(s.Ref("HorizontalPodAutoscaler", cr.GetName()), "to exist", harness.Exists)
	s.Delete(cr)
	s.ExpectGone(cr)
	requests := s.RequestsOf(from, s.User)
	for _, e := range requests {
		if e.Code == 403 && e.Verb != "list" {
			t.Errorf("refused: %s %s", e.Verb, e.RequestURI)
		}
	}
	compare(t, permissionsOf(rulesFor(t, objects, "hooked")), usedIn(requests.Filter(allowed)),
		"get webapps.example.com") // used when one is too large for the cache
}

// expectWarnings compares what the user of an image hears, which no test of the package can say.
func expectWarnings(t *testing.T, s *harness.Env, admin *harness.Warned) {
	t.Helper()
	for name, tc := range map[string]struct{ reason, image, says string }{
		"Tagged":           {"each server runs the same", "nginx:1.25", ""},
		"Digest":           {"nothing is more exact", "nginx@sha256:" + strings.Repeat("0", 64), ""},
		"Untagged":         {"it is the tag latest", "nginx", "nginx has no tag, so each server may run another version of it"},
		"OnlyAPort":        {"a port of the registry is no tag", "registry.example.com:5000/nginx", "registry.example.com:5000/nginx has no tag"},
		"Latest":           {"the tag moves", "nginx:latest", "the tag latest may be another version for each server"},
		"BeginsWithLatest": {"it is another tag", "nginx:latest-1", ""},
	} {
		if err := admin.Create(t.Context(), s.Webapp("asked", map[string]any{"image": tc.image}), client.DryRunAll); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		var about []string
		for _, text := range admin.Take() {
			if strings.Contains(text, "spec.image") {
				about = append(about, text)
			}
		}
		if said := strings.Join(about, "; "); (said == "") != (tc.says == "") || !strings.Contains(said, tc.says) {
			t.Errorf("%s: %s: it says %q, want %q", name, tc.reason, said, tc.says)
		}
	}
}

// webapps is held by a test that applies the definition of WebApp as somebody who installs: with webhooks, and without.
var webapps sync.Mutex

// lockWebapps holds the definition of WebApp until the test ends.
func lockWebapps(t *testing.T) {
	t.Helper()
	webapps.Lock()
	t.Cleanup(webapps.Unlock)
}

// removeConversion makes the definition of WebApp that of an installation without webhooks. An apply alone does not: the
// operator owns the certificate in it.
func removeConversion(t *testing.T) {
	t.Helper()
	definition := harness.Object("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", "webapps.example.com")
	patch := harness.Encode(t, map[string]any{"spec": map[string]any{"conversion": map[string]any{"strategy": "None", "webhook": nil}}})
	if err := harness.Suite.Admin.Patch(context.WithoutCancel(t.Context()), definition, client.RawPatch(types.MergePatchType, patch)); err != nil {
		t.Error(err)
	}
}

// withoutWebhooks returns manifests without the configurations of webhooks, which the test has changed.
func withoutWebhooks(t *testing.T, objects []*unstructured.Unstructured) []byte {
	t.Helper()
	var out []byte
	for _, u := range objects {
		if !strings.HasSuffix(u.GetKind(), "WebhookConfiguration") {
			out = append(append(out, "---\n"...), harness.Encode(t, u.Object)...)
			out = append(out, '\n')
		}
	}
	return out
}
