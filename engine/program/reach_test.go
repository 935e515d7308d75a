package program_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"operetta.dev/engine/program"
	"operetta.dev/test/inline"
	"operetta.dev/test/machine"
)

func TestAReachIsWhatThePackageSaysByKind(t *testing.T) {
	t.Parallel()
	r := compile(t, `
reach: {
	Namespace: {}
	"Deployment.apps": namespaces: {monitoring: true, logging: true}
	ConfigMap: namespaces: "team-*": true
	Service: namespaces: "*": true
	Secret: {access: "read", namespaces: shared: true}
}
`).Reach()
	const want = "ConfigMap=team-* Deployment.apps=logging,monitoring Namespace Service=* read:Secret=shared"
	if got := r.String(); got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
	parsed, err := program.ParseReach(want)
	if err != nil {
		t.Fatal(err)
	}
	for name, row := range map[string]struct {
		home, kind, namespace string
		owns, reads           bool
	}{
		"its own namespace":                 {"shop", "Secret", "shop", true, true},
		"a namespace of the kind":           {"shop", "Deployment.apps", "logging", true, true},
		"a kind of that name":               {"shop", "Deployment.example.com", "logging", false, false},
		"a namespace of another kind":       {"shop", "Deployment.apps", "team-a", false, false},
		"one that begins as another":        {"shop", "Deployment.apps", "logging-2", false, false},
		"a beginning":                       {"shop", "ConfigMap", "team-a", true, true},
		"another beginning":                 {"shop", "ConfigMap", "teams", false, false},
		"any":                               {"shop", "Service", "kube-system", true, true},
		"a cluster-scoped kind":             {"shop", "Namespace", "", true, true},
		"another cluster-scoped kind":       {"shop", "ClusterRole.rbac.authorization.k8s.io", "", false, true},
		"what is only read":                 {"shop", "Secret", "shared", false, true},
		"what is only read, in another":     {"shop", "Secret", "kube-system", false, false},
		"a resource that is cluster-scoped": {"", "Secret", "kube-system", true, true},
	} {
		for _, r := range []program.Reach{r, parsed} {
			if err := r.MayOwn(row.home, schema.ParseGroupKind(row.kind), row.namespace); (err == nil) != row.owns {
				t.Errorf("%s: owns it: %v, want %v", name, err, row.owns)
			}
			if err := r.MayRead(row.home, schema.ParseGroupKind(row.kind), row.namespace); (err == nil) != row.reads {
				t.Errorf("%s: reads it: %v, want %v", name, err, row.reads)
			}
		}
	}
}

func TestAReachIsWrittenOutAndNothingElse(t *testing.T) {
	t.Parallel()
	machine.Serial(t)
	for name, row := range map[string]struct{ body, want string }{
		"a namespace of the spec":         {`reach: ConfigMap: namespaces: (cr.spec.size): true`, "rests on cr.spec.size"},
		"a kind of the spec":              {`reach: (cr.spec.size): {}`, "rests on cr.spec.size"},
		"by another name":                 {"_n: cr.metadata.name\nreach: ConfigMap: namespaces: (_n): true", "rests on cr.metadata.name"},
		"by a let":                        {"let n = cr.spec\nreach: ConfigMap: namespaces: (n.size): true", "rests on cr.spec.size"},
		"a condition":                     {`if cr.spec.size != _|_ {reach: Namespace: {}}`, "rests on cr.spec.size"},
		"a condition within":              {`reach: {if cr.spec.size != _|_ {Namespace: {}}}`, "rests on cr.spec.size"},
		"a loop":                          {`reach: {for k, _ in cr.spec {(k): {}}}`, "rests on cr.spec"},
		"what is read":                    {"inputs: x: {apiVersion: \"v1\", kind: \"ConfigMap\", name: \"x\"}\nreach: ConfigMap: namespaces: (inputs.x.object.data.n): true", "rests on inputs.x.object.data.n"},
		"a kind with a slash":             {`reach: "apps/Deployment": {}`, "a name has to match"},
		"a namespace that is none":        {`reach: ConfigMap: namespaces: "A B": true`, "a name has to match"},
		"the word that allowed it all":    {`clusterScoped: true`, `reach: {Namespace: {}, "Deployment.apps": namespaces: monitoring: true}`},
		"the word that allowed it, false": {`clusterScoped: false`, `reach: {Namespace: {}`},
		"an access that is none":          {`reach: ConfigMap: access: "write"`, "reach.ConfigMap.access"},
	} {
		_, err := program.Load(inline.Snapshot(t, head+row.body))
		if err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: got %v, want %q", name, err, row.want)
		}
	}
}

func TestAReachThatIsReadIsOneThatWasWritten(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		" ", "Namespace ", "Namespace  Secret", "Secret=b,a", "Secret=a,a", "Secret Namespace", "Secret=", "Secret=a,", "Secret=,", "secret", "Secret=A",
		"read:", "read:read:Secret", "Secret=*,", "Secret=a*b", "Secret Secret", "Secret Secret=a", "Secret=\n", "*", "Secret=**", ".apps", "Secret..x",
	} {
		if r, err := program.ParseReach(text); err == nil {
			t.Errorf("%q was read as %q", text, r)
		}
	}
}

func FuzzReach(f *testing.F) {
	for _, text := range []string{"", "Namespace", "Deployment.apps=logging,monitoring Namespace read:Secret=shared", "ConfigMap=* Secret=team-*", "Secret=", "read:="} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		r, err := program.ParseReach(text)
		if err != nil {
			return
		}
		if r.String() != text {
			t.Errorf("%q was read as %q", text, r)
		}
		if r.MayOwn("home", schema.GroupKind{Kind: "Unheard"}, "there") == nil && !strings.Contains(text, "Unheard") {
			t.Errorf("%q reaches what it does not name", text)
		}
	})
}
