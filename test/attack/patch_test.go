package attack

import (
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/test/harness"
)

// patchedBody is a package with pods and a Secret, which a Patch was used to attack.
const patchedBody = `
#Spec: replicas: int | *0

components: web: objects: {
	deployment: {
		apiVersion: "apps/v1"
		kind:       "Deployment"
		metadata: name: cr.metadata.name
		spec: {
			replicas: cr.spec.replicas
			selector: matchLabels: app: cr.metadata.name
			template: {
				metadata: labels: app: cr.metadata.name
				spec: containers: [{name: "web", image: "nginx:1.25"}]
			}
		}
	}
	secret: {
		apiVersion: "v1"
		kind:       "Secret"
		metadata: name: cr.metadata.name
	}
	map: {
		apiVersion: "v1"
		kind:       "ConfigMap"
		metadata: name: cr.metadata.name
	}
}
`

// patches returns a rule that allows everything with Patches.
func patches() map[string]any { return harness.Rule("operetta.dev", harness.AllVerbs, "*") }

// patchOf returns a Patch of a resource of a package.
func patchOf(p *harness.TestPackage, s *harness.Env, name string, changes ...any) *unstructured.Unstructured {
	u := s.NewPatch(name, "shop", 0, changes...)
	u.Object["spec"].(map[string]any)["target"] = map[string]any{"apiVersion": p.Name + ".example.com/v1", "kind": "Thing", "name": "shop"}
	return u
}

// pods returns a change of the pods of a Deployment.
func pods(fields map[string]any) map[string]any {
	return harness.Spec(map[string]any{"template": map[string]any{"spec": fields}})
}

// privilegedPodSpec returns fields that give a pod control of its node.
func privilegedPodSpec() map[string]any {
	return pods(map[string]any{
		"serviceAccountName": "admin-sa", "hostPID": true,
		"containers": []any{map[string]any{
			"name": "web", "image": "evil:1", "securityContext": map[string]any{"privileged": true},
			"volumeMounts": []any{map[string]any{"name": "root", "mountPath": "/host"}},
		}},
		"volumes": []any{map[string]any{"name": "root", "hostPath": map[string]any{"path": "/"}}},
	})
}

// In TestAttackAPatchForRightsThatItsAuthorLacks the attacker may write Patches and resources of the
// package, but neither pods nor Secrets, and there are no policies.
func TestAttackAPatchForRightsThatItsAuthorLacks(t *testing.T) {
	t.Parallel()
	s := harness.NewEnv(t)
	p := harness.NewTestPackage(t, "patchedalone", patchedBody)
	s.StartOperator(p.Dir)
	alice := s.Tenant("alice", s.Namespace, things(p), patches())
	cr := alice.Create(p.Thing(s, "shop", nil))
	s.ExpectResourceReady(cr)

	alice.Create(patchOf(p, s, "rooted", harness.StrategicMerge("web.deployment", privilegedPodSpec())))
	alice.Create(patchOf(p, s, "token", harness.StrategicMerge("web.secret", map[string]any{
		"type":     "kubernetes.io/service-account-token",
		"metadata": map[string]any{"annotations": map[string]any{"kubernetes.io/service-account.name": "admin-sa"}},
	})))
	alice.Create(patchOf(p, s, "held", harness.StrategicMerge("web.map", map[string]any{"metadata": map[string]any{"finalizers": []any{"evil.example.com/x"}}})))
	alice.Create(patchOf(p, s, "marked", harness.StrategicMerge("web.map", harness.Annotation("operetta.dev/delete", "orphan"))))
	alice.Create(patchOf(p, s, "guess", harness.JSONOperations("web.secret", map[string]any{"op": "test", "path": "/data/pin", "value": "MTIzNA=="})))
	s.ExpectPatch("rooted", "NotPatchable", "spec.template.spec.", "patchable")
	s.ExpectPatch("token", "NotPatchable", "Secret")
	s.ExpectPatch("guess", "NotPatchable", "Secret")
	s.ExpectPatch("held", "Invalid", "metadata.finalizers")
	s.ExpectPatch("marked", "Invalid", "operetta.dev/delete")

	for name, operation := range map[string]map[string]any{
		"panics":  {"op": "test", "path": ""},
		"nothing": {"op": "add", "path": "/spec/paused"},
		"nowhere": {"op": "copy", "path": "/spec/paused"},
		"no-path": {"op": "remove", "path": "spec"},
	} {
		if err := alice.Client.Create(t.Context(), patchOf(p, s, name, harness.JSONOperations("web.deployment", operation))); !apierrors.IsInvalid(err) {
			t.Errorf("%s: the API server takes %v: %v", name, operation, err)
		}
	}

	// The resource is reconciled without the Patches.
	if err := alice.Patch(cr, harness.Spec(map[string]any{"replicas": 1})); err != nil {
		t.Fatal(err)
	}
	s.ExpectObject(s.Ref("Deployment", "shop"), "to have a replica", func(u *unstructured.Unstructured) error {
		if harness.Field(u, "spec", "replicas") != int64(1) {
			return harness.ErrNotYet
		}
		return nil
	})
	pod := harness.Field(s.Get("Deployment", "shop"), "spec", "template", "spec").(map[string]any)
	if pod["hostPID"] != nil || pod["serviceAccountName"] != nil || pod["volumes"] != nil {
		t.Errorf("the pods have got rights: %v", pod)
	}
	if kind := harness.Field(s.Get("Secret", "shop"), "type"); kind != "Opaque" {
		t.Errorf("the Secret is of type %v", kind)
	}
	if f := s.Get("ConfigMap", "shop").GetFinalizers(); len(f) > 0 {
		t.Errorf("the ConfigMap has the finalizers %v", f)
	}
}

// patchOfKind adds the kind of the object to a change.
func patchOfKind(apiVersion, kind string, change map[string]any) map[string]any {
	change["apiVersion"], change["kind"] = apiVersion, kind
	return change
}

// labelled returns a change that grants no rights.
func labelled(address string) map[string]any {
	return harness.StrategicMerge(address, map[string]any{"metadata": map[string]any{"labels": map[string]any{"example.com/patched": "yes"}}})
}

// TestAttackAPatchUnderThePolicies does the same where the output of `operetta install` was applied.
func TestAttackAPatchUnderThePolicies(t *testing.T) {
	t.Parallel()
	s := harness.NewEnv(t)
	p := harness.NewTestPackage(t, "patchedunder", patchedBody)
	s.StartOperator(p.Dir)
	installPolicies(s, p)
	alice := s.Tenant("alice", s.Namespace, things(p), patches(), harness.Rule("", []any{"update"}, "configmaps"))
	bob := s.Tenant("bob", s.Namespace, things(p), patches(), harness.Rule("apps", []any{"update"}, "deployments"))
	s.ExpectResourceReady(alice.Create(p.Thing(s, "shop", nil)))
	awaitPolicy(alice, patchOf(p, s, "early", labelled("web.map")))

	for name, change := range map[string]map[string]any{
		"rooted":  patchOfKind("apps/v1", "Deployment", harness.StrategicMerge("web.deployment", privilegedPodSpec())),
		"label":   patchOfKind("apps/v1", "Deployment", labelled("web.deployment")),
		"unsaid":  labelled("web.deployment"),
		"secret":  patchOfKind("v1", "Secret", labelled("web.secret")),
		"unknown": patchOfKind("example.com/v1", "Gadget", labelled("web.deployment")),
	} {
		if err := alice.Client.Create(t.Context(), patchOf(p, s, name, change)); !apierrors.IsForbidden(err) {
			t.Errorf("%s: it takes more rights than alice has: %v", name, err)
		}
	}
	// A Patch may change only kinds that its author may update.
	alice.Create(patchOf(p, s, "hers", patchOfKind("v1", "ConfigMap", labelled("web.map"))))
	alice.Create(patchOf(p, s, "lie", patchOfKind("v1", "ConfigMap", labelled("web.deployment"))))
	s.ExpectPatch("hers", "Applied")
	s.ExpectPatch("lie", "Invalid", "Deployment.apps")

	his := bob.Create(patchOf(p, s, "his", patchOfKind("apps/v1", "Deployment", labelled("web.deployment"))))
	s.ExpectPatch("his", "Applied")
	if err := bob.Patch(his, harness.Spec(map[string]any{"patches": []any{patchOfKind("v1", "Secret", labelled("web.secret"))}})); !apierrors.IsForbidden(err) {
		t.Errorf("bob turns his Patch into one of a Secret: %v", err)
	}
	if err := alice.Patch(his, harness.Spec(map[string]any{"order": 5})); !apierrors.IsForbidden(err) {
		t.Errorf("alice changes bob's Patch: %v", err)
	}
	if err := alice.Patch(his, harness.Annotation("example.com/note", "seen")); err != nil {
		t.Errorf("what changes nothing else is allowed: %v", err)
	}
	if err := alice.PatchStatus(his, map[string]any{"status": map[string]any{"observedGeneration": 99}}); !apierrors.IsForbidden(err) {
		t.Errorf("alice writes the status of a Patch: %v", err)
	}
}
