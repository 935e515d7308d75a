package rights

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/test/controlplane"
	"operetta.dev/test/harness"
)

// The limits of a permission that is missing: how soon it is named, how long it is missing so that the
// delays of retries have grown, how many requests the operator may send meanwhile, and how soon all is
// well after its return.
const (
	namedWithin     = 10 * time.Second
	missingFor      = 25 * time.Second
	requestsMissing = 40
	recoveredWithin = 10 * time.Second
)

// limitedBody renders a ConfigMap before a Service, so that the deletion has an order, and reads a Secret.
// The extra ConfigMap comes and goes.
const limitedBody = `
#Spec: {extra: bool | *true, text: string | *"a"}

inputs: token: {apiVersion: "v1", kind: "Secret", name: "token"}

components: {
	settings: objects: map: {
		apiVersion: "v1"
		kind:       "ConfigMap"
		metadata: name: "settings-\(cr.metadata.name)"
		data: text: cr.spec.text
		if inputs.token.object != _|_ {
			metadata: labels: token: inputs.token.object.metadata.name
		}
	}
	web: {
		dependsOn: settings: {}
		objects: service: {
			apiVersion: "v1"
			kind:       "Service"
			metadata: name: "web-\(cr.metadata.name)"
			spec: ports: [{port: 80}]
		}
	}
	extra: {
		when: cr.spec.extra
		objects: account: {
			apiVersion: "v1"
			kind:       "ServiceAccount"
			metadata: name: "extra-\(cr.metadata.name)"
		}
	}
}
`

// missing is a permission that is taken away.
type missing struct {
	reason string
	// verb and resource are what is taken.
	verb, resource string
	// needs changes a resource that is ready so that the permission is needed; nil creates the resource
	// without it.
	needs func(s *harness.Env, cr *unstructured.Unstructured)
	// searches bounds the lists of kinds, if there may be any: without an inventory in a status, each
	// retry looks for objects of all kinds.
	searches int
	// condition is the reason of the Ready condition that names it. The log names it if it is "": without the
	// permission there is no status to write, or nothing else is wrong.
	condition string
}

// missed are the permissions that are taken away, each by the name of its row.
var missed = map[string]missing{
	"WatchOfAChild":    {"a kind that cannot be watched is not known", "watch", "services", nil, 0, "KindUnreadable"},
	"GetOfAChild":      {"what seems absent is read before it is created", "get", "services", nil, 0, "ApplyFailed"},
	"CreateOfAChild":   {"an apply that creates needs create", "create", "services", nil, 0, "ApplyFailed"},
	"PatchOfAChild":    {"an apply is a patch", "patch", "configmaps", changing(map[string]any{"text": "b"}), 0, "ApplyFailed"},
	"DeleteOfAChild":   {"what is no longer rendered is deleted", "delete", "serviceaccounts", changing(map[string]any{"extra": false}), 0, "DeleteFailed"},
	"WatchOfAnInput":   {"an input is watched", "watch", "secrets", nil, 0, "KindUnreadable"},
	"PatchOfTheParent": {"the finalizer is a patch of the resource", "patch", "things", nil, 0, "ApplyFailed"},
	"WatchOfTheParent": {"nothing is known of any resource", "watch", "things", nil, 0, ""},
	"PatchOfTheStatus": {"there is no status that could say it", "patch", "things/status", nil, 150, ""},
	"WatchOfPatches":   {"a Patch may change what is rendered", "watch", "patches", nil, 0, "KindUnreadable"},
}

// changing returns a change of the spec.
func changing(fields map[string]any) func(*harness.Env, *unstructured.Unstructured) {
	return func(s *harness.Env, cr *unstructured.Unstructured) { s.Patch(cr, harness.Spec(fields)) }
}

func TestF37EachPermissionThatIsMissingIsNamedAndMissedNoLonger(t *testing.T) {
	t.Parallel()
	for name, tc := range missed {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tc.run(t, strings.ToLower(name))
		})
	}
}

// run takes the permission away, and gives it back.
func (m missing) run(t *testing.T, name string) {
	t.Helper()
	s := harness.NewEnv(t)
	p := harness.NewTestPackage(t, name, limitedBody)
	s.Create(harness.Object("v1", "Secret", s.Namespace, "token"))
	roles := operetta(t, "rbac", p.Dir, "--namespace", s.Namespace, "--service-account", s.Namespace+"/operator", "--leader-election-id=")
	apply(t, roles)
	role := m.roleIn(t, objectsIn(t, roles))
	s.ActAsAccount(s.Namespace + "/operator")
	whole := s.ExpectObject(role, "to exist", harness.Exists).Object["rules"].([]any)
	if m.needs == nil {
		s.Patch(role, map[string]any{"rules": m.without(t, whole)})
	}
	o := s.StartRestrictedOperator(p)
	cr := s.Create(p.Thing(s, "shop", map[string]any{}))
	if m.needs != nil {
		s.ExpectResourceReady(cr)
		s.Patch(role, map[string]any{"rules": m.without(t, whole)})
		m.needs(s, cr)
	}

	began, from := time.Now(), harness.MarkAudit(t)
	took := harness.Within(t, namedWithin, "the permission to be named", func() error { return m.named(s, o, cr) })
	t.Logf("%s: named after %s: %v", m.reason, took.Round(time.Millisecond), harness.Condition(s.ExpectObject(cr, "to exist", harness.Exists), "Ready")["message"])
	harness.Eventually(t, "the delays to grow", func() error {
		if time.Since(began) < missingFor {
			return harness.ErrNotYet
		}
		return nil
	})
	asked := s.OperatorRequests(from).Filter(func(e controlplane.AuditEvent) bool {
		// Other tests install kinds, and every operator looks once for resources of kinds that nobody serves.
		ofAnother := e.Verb == "list" && strings.HasSuffix(e.Group, ".example.com") && e.Group != p.Name+".example.com" || e.Group == "example.com"
		return e.Resource != "events" && !ofAnother
	})
	t.Logf("requests within %s: %s", harness.Elapsed(began), asked)
	searches := asked.Filter(func(e controlplane.AuditEvent) bool { return m.searches > 0 && e.Verb == "list" })
	if own := len(asked) - len(searches); own > requestsMissing || len(searches) > m.searches {
		t.Errorf("%d requests and %d searches within %s, not at most %d and %d", own, len(searches), harness.Elapsed(began), requestsMissing, m.searches)
	}

	expectRecovery(t, s, role, whole, cr)
}

// expectRecovery gives a role all of its rules back, and expects that the resource is ready soon.
func expectRecovery(t *testing.T, s *harness.Env, role *unstructured.Unstructured, rules any, cr *unstructured.Unstructured) {
	t.Helper()
	s.Patch(role, map[string]any{"rules": rules})
	took := harness.Within(t, recoveredWithin, "the resource to be ready", func() error {
		u, err := harness.GetOrNil(t.Context(), cr)
		if err != nil {
			return err
		}
		return harness.Ready(u)
	})
	t.Logf("ready %s after the return of the permission", took.Round(time.Millisecond))
}

// roleIn returns the role that has the permission.
func (m missing) roleIn(t *testing.T, objects []*unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	for _, u := range objects {
		if m.isIn(u) {
			return harness.Object(u.GetAPIVersion(), u.GetKind(), u.GetNamespace(), u.GetName())
		}
	}
	t.Fatalf("no role has %s %s", m.verb, m.resource)
	return nil
}

// isIn reports whether a role has the permission.
func (m missing) isIn(role *unstructured.Unstructured) bool {
	rules, _, _ := unstructured.NestedSlice(role.Object, "rules")
	return slices.ContainsFunc(rules, func(r any) bool {
		rule := r.(map[string]any)
		resources, verbs := rule["resources"].([]any), rule["verbs"].([]any)
		return slices.Contains(resources, any(m.resource)) && slices.Contains(verbs, any(m.verb))
	})
}

// TestNoPermissionIsLeftOutOfThoseThatAreTakenAway keeps the table complete: each permission of the roles is in it, or
// stands here with the reason why nobody would miss it within seconds.
func TestNoPermissionIsLeftOutOfThoseThatAreTakenAway(t *testing.T) {
	t.Parallel()
	p := harness.NewTestPackage(t, "complete", limitedBody)
	tested := map[string]bool{}
	kindOf := map[string]string{"services": "a child", "configmaps": "a child", "serviceaccounts": "a child", "secrets": "an input"}
	group := func(verb, resource string) string { return verb + " " + cmp.Or(kindOf[resource], resource) }
	for _, m := range missed {
		tested[group(m.verb, m.resource)] = true
	}
	for _, m := range missedByEngine {
		tested[group(m.verb, m.resource)] = true
	}
	one := operetta(t, "rbac", p.Dir, "--namespace", "any", "--leader-election-id=")
	all := operetta(t, "rbac", p.Dir, "--packages-from-cluster", "--impersonate", "other=any/web")
	for _, r := range append(rulesIn(t, one), rulesIn(t, all)...) {
		for _, resource := range r.Resources {
			for _, verb := range r.Verbs {
				if one := group(verb, resource); !tested[one] && unmissed[one] == "" {
					t.Errorf("no test takes %s away", one)
				}
			}
		}
	}
	for one := range unmissed {
		if tested[one] {
			t.Errorf("a test takes %s away, and it says that nobody misses it", one)
		}
	}
}

// unmissed says why a permission is not missed within seconds.
var unmissed = map[string]string{
	"list a child":                   "the API server streams lists, which is a watch",
	"list an input":                  "the same",
	"list things":                    "the same",
	"list patches":                   "without it the operator does without Patches, and the log says so",
	"get an input":                   "read when it is too large for the cache",
	"get things":                     "the same",
	"update things/finalizers":       "asked for by an admission plugin that is off here: it learns of new kinds only twice a minute, and refuses their objects until then",
	"patch patches/status":           "used when there is a Patch",
	"patch events":                   "used when an event repeats",
	"create events":                  "an event that cannot be written is no reason to stop",
	"list customresourcedefinitions": "resources whose package is missing are looked for once in ten minutes",

	"create customresourcedefinitions": "the patch that creates one is refused as well: its row takes that away",
	"impersonate a child":              "TestAPackageMayNotNameAnAccountThatTheOperatorMayNotActAs is about it",
	"update leases":                    "TestW46ALeaderThatLosesItsLeaseWritesNothingAfterTheDeadline is about it",
	"get packages":                     "used when a standby comes to lead, or two Packages have one kind",
	"list packages":                    "the API server streams lists, which is a watch",
	"get overlays":                     "used when one is too large for the cache",
	"list overlays":                    "the API server streams lists, which is a watch",
	"get packagerevisions":             "used when a Package goes back to an old version",
	"delete packagerevisions":          "used when a Package has many versions",
}

// without returns rules without the permission.
func (m missing) without(t *testing.T, rules []any) []any {
	t.Helper()
	var out []any
	taken := false
	for _, r := range rules {
		rule := r.(map[string]any)
		resources, verbs := rule["resources"].([]any), rule["verbs"].([]any)
		for _, resource := range resources {
			var left []any
			for _, verb := range verbs {
				if verb == m.verb && resource == m.resource {
					taken = true
					continue
				}
				left = append(left, verb)
			}
			if len(left) > 0 {
				less := maps.Clone(rule) // it may have resourceNames
				less["resources"], less["verbs"] = []any{resource}, left
				out = append(out, less)
			}
		}
	}
	if !taken {
		t.Fatalf("no rule has %s %s", m.verb, m.resource)
	}
	return out
}

// named returns nil if a condition of the resource names the permission, or the log.
func (m missing) named(s *harness.Env, o *harness.Operator, cr *unstructured.Unstructured) error {
	if m.condition == "" {
		resource, _, _ := strings.Cut(m.resource, "/")
		for line := range harness.Lines(o.Log.From(0), "cannot "+m.verb+" resource") {
			if harness.ContainsAll(line, []string{resource, s.User}) {
				return nil
			}
		}
		return harness.ErrNotYet
	}
	u, err := harness.GetOrNil(s.T.Context(), cr)
	if err != nil || u == nil {
		return fmt.Errorf("reading it: %w", err)
	}
	c := harness.Condition(u, "Ready")
	message, _ := c["message"].(string)
	if c["status"] == "False" && c["reason"] == m.condition && harness.ContainsAll(message, []string{"cannot " + m.verb + " resource", m.resource, s.User}) {
		return nil
	}
	return fmt.Errorf("Ready is %v: %v: %v", c["status"], c["reason"], message)
}
