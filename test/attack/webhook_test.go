package attack

import (
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net/http/httptest"
	"path/filepath"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"operetta.dev/test/harness"
)

// TestAttackAPatchUnderTheWebhook does the same with the admission webhook of the operator instead of a
// policy.
func TestAttackAPatchUnderTheWebhook(t *testing.T) {
	t.Parallel()
	s := harness.NewEnv(t)
	p := harness.NewTestPackage(t, "patchedasked", patchedBody)
	folder, authority := certificate(t)
	port := harness.FreePort(t)
	s.WithClusterRoles("operetta rbac lets no operator of some namespaces ask the API server who may do what")
	s.StartOperator(p.Dir, "--webhook-bind-address", "127.0.0.1:"+port, "--webhook-cert-dir", folder)
	alice := s.Tenant("alice", s.Namespace, things(p), patches(), harness.Rule("", []any{"update"}, "configmaps"))
	s.ExpectResourceReady(alice.Create(p.Thing(s, "shop", nil)))
	registerWebhook(s, port, authority)
	awaitPolicy(alice, patchOf(p, s, "early", labelled("web.map")))

	for name, change := range map[string]map[string]any{
		"rooted":  patchOfKind("apps/v1", "Deployment", harness.StrategicMerge("web.deployment", privilegedPodSpec())),
		"secret":  patchOfKind("v1", "Secret", labelled("web.secret")),
		"unsaid":  labelled("web.deployment"),
		"unknown": patchOfKind("nowhere.example.com/v1", "Gadget", labelled("web.deployment")),
	} {
		if err := alice.Client.Create(t.Context(), patchOf(p, s, name, change)); !apierrors.IsForbidden(err) {
			t.Errorf("%s: it takes more rights than alice has: %v", name, err)
		}
	}
	hers := alice.Create(patchOf(p, s, "hers", patchOfKind("v1", "ConfigMap", labelled("web.map"))))
	s.ExpectPatch("hers", "Applied")
	if err := alice.Patch(hers, harness.Spec(map[string]any{"patches": []any{patchOfKind("v1", "Secret", labelled("web.secret"))}})); !apierrors.IsForbidden(err) {
		t.Errorf("alice turns her Patch into one of a Secret: %v", err)
	}
	// If the webhook cannot be called, the request is rejected.
	s.Operator.Stop()
	if err := alice.Client.Create(t.Context(), patchOf(p, s, "unheard", patchOfKind("v1", "ConfigMap", labelled("web.map")))); err == nil {
		t.Error("a Patch is taken although nobody was asked")
	}
}

// registerWebhook makes the API server call the operator's webhook for Patches in the test's namespace.
func registerWebhook(s *harness.Env, port string, authority []byte) {
	s.T.Helper()
	config := harness.Object("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", "", s.Namespace)
	config.Object["webhooks"] = []any{map[string]any{
		"name": "patches.operetta.dev", "admissionReviewVersions": []any{"v1"}, "sideEffects": "None", "failurePolicy": "Fail",
		"clientConfig":      map[string]any{"url": fmt.Sprintf("https://127.0.0.1:%s/validate-patches", port), "caBundle": authority},
		"namespaceSelector": map[string]any{"matchLabels": map[string]any{"kubernetes.io/metadata.name": s.Namespace}},
		"rules": []any{map[string]any{
			"apiGroups": []any{"operetta.dev"}, "apiVersions": []any{"*"}, "resources": []any{"patches"}, "operations": []any{"CREATE", "UPDATE"},
		}},
	}}
	s.Create(config)
}

// certificate writes a serving certificate for this machine to a folder, and returns the folder and the
// certificate authority.
func certificate(t *testing.T) (folder string, authority []byte) {
	t.Helper()
	server := httptest.NewTLSServer(nil)
	defer server.Close()
	key, err := x509.MarshalPKCS8PrivateKey(server.TLS.Certificates[0].PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	authority = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	folder = t.TempDir()
	harness.WriteFile(t, filepath.Join(folder, "tls.crt"), string(authority))
	harness.WriteFile(t, filepath.Join(folder, "tls.key"), string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key})))
	return folder, authority
}
