package rights

import (
	"crypto/tls"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/test/harness"
)

// missingOfEngine is a permission of the engine itself that is taken away. The log names it, or the Ready condition of the Package.
type missingOfEngine struct {
	reason         string
	verb, resource string
	// prints are flags of operetta rbac, and runs those of the operator.
	prints, runs []string
	// condition is the reason of the condition, or "" for the log.
	condition string
	// works returns nil if what needs the permission works.
	works func(x *engineCase) error
}

// engineCase is an operator of a package, in a folder and as a Package.
type engineCase struct {
	*harness.Env

	p        *harness.PackageObject
	operator *harness.Operator
	cr       *unstructured.Unstructured
	token    string
}

// What is missed by the engine.
var (
	runsLease      = []string{"--leader-elect", "--leader-elect-namespace=HOME"}
	printsPackages = []string{"--packages-from-cluster", "--leader-election-id="}
	runsPackages   = []string{"--packages-from-cluster", "--package-selector=test=HOME"}
	printsNothing  = []string{"--leader-election-id="}
	runsMetrics    = []string{"--metrics-secure"}
)

var missedByEngine = map[string]missingOfEngine{
	"GetOfTheLease":         {"whoever cannot see who leads does not lead", "get", "leases", nil, runsLease, "", reconciles},
	"CreateOfTheLease":      {"the first to lead makes the Lease", "create", "leases", nil, runsLease, "", reconciles},
	"CreateOfATokenReview":  {"nobody is asked who reads metrics", "create", "tokenreviews", printsNothing, runsMetrics, "", servesMetrics},
	"CreateOfAnAccessCheck": {"nobody is asked who may read metrics", "create", "subjectaccessreviews", printsNothing, runsMetrics, "", servesMetrics},
	"GetOfADefinition":      {"the first thing that a process does is to look for the definitions of the engine", "get", "customresourcedefinitions", printsNothing, nil, "", reconciles},
	"GetBeforeItLeads":      {"a process that does not lead yet looks for them, too", "get", "customresourcedefinitions", nil, runsLease, "", reconciles},
	"PatchOfADefinition":    {"a Package brings its definition", "patch", "customresourcedefinitions", printsPackages, runsPackages, "CRDNotInstalled", reconciles},
	"WatchOfPackages":       {"nothing is known of any Package", "watch", "packages", printsPackages, runsPackages, "", reconciles},
	"PatchOfAPackage":       {"the finalizer is a patch of the Package", "patch", "packages", printsPackages, runsPackages, "", reconciles},
	"PatchOfItsStatus":      {"there is no status that could say it", "patch", "packages/status", printsPackages, runsPackages, "", reconciles},
	"PatchOfARevision":      {"an apply is a patch", "patch", "packagerevisions", printsPackages, runsPackages, "", reconciles},
	"ListOfRevisions":       {"what was served before is not known", "list", "packagerevisions", printsPackages, runsPackages, "", reconciles},
	"WatchOfOverlays":       {"an Overlay may change what a Package is", "watch", "overlays", printsPackages, runsPackages, "", reconciles},
	"CreateOfARevision":     {"a version is stored before it is served", "create", "packagerevisions", printsPackages, runsPackages, "", reconciles},
}

// reconciles reports whether a resource becomes ready.
func reconciles(x *engineCase) error {
	u, err := harness.GetOrNil(x.T.Context(), x.cr)
	if err != nil {
		return err
	}
	if u == nil {
		if err := harness.Suite.Admin.Create(x.T.Context(), x.cr.DeepCopy()); err != nil {
			return err // the definition is not there yet
		}
		return harness.ErrNotYet
	}
	return harness.Ready(u)
}

// servesMetrics reports whether somebody who may do everything gets metrics.
func servesMetrics(x *engineCase) error {
	if x.token == "" {
		x.Kubectl("create", "serviceaccount", "scraper")
		x.token = strings.TrimSpace(x.Kubectl("create", "token", "scraper"))
		x.GrantEverywhere(x.AccountUser("scraper"), map[string]any{"nonResourceURLs": []any{"/metrics"}, "verbs": []any{"get"}})
	}
	req, err := http.NewRequestWithContext(x.T.Context(), http.MethodGet, "https://"+x.operator.Address(harness.MetricsServer)+"/metrics", http.NoBody)
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+x.token)
	c := http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}}
	resp, err := c.Do(req)
	if err != nil {
		return err
	}
	if err := resp.Body.Close(); err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("the code is %d", resp.StatusCode)
	}
	return nil
}

func TestF37EachPermissionOfTheEngineThatIsMissingIsNamedAndMissedNoLonger(t *testing.T) {
	t.Parallel()
	for name, tc := range missedByEngine {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tc.run(t, "engine"+strings.ToLower(name))
		})
	}
}

// run takes the permission away before the operator starts, and gives it back.
func (m missingOfEngine) run(t *testing.T, name string) {
	t.Helper()
	s := harness.NewEnv(t)
	x := &engineCase{Env: s, p: s.NewPackageObject(name)}
	x.cr = x.p.Thing(s, "shop", map[string]any{})
	folder := harness.NewTestPackage(t, name, editedBody)
	roles := operetta(t, append([]string{"rbac", folder.Dir, "--service-account", s.Namespace + "/operator"}, m.prints...)...)
	apply(t, roles)
	one := missing{verb: m.verb, resource: m.resource}
	role := one.roleIn(t, objectsIn(t, roles))
	whole := s.ExpectObject(role, "to exist", harness.Exists).Object["rules"].([]any)
	s.Patch(role, map[string]any{"rules": one.without(t, whole)})
	s.ActAsAccount(s.Namespace + "/operator")
	args := []string{harness.Everywhere, harness.Alone}
	for _, flag := range m.runs {
		args = append(args, strings.ReplaceAll(flag, "HOME", s.Namespace))
	}
	if slices.Contains(args, "--packages-from-cluster") {
		s.Kubectl("apply", "--server-side", "--force-conflicts", "-f", filepath.Join(harness.Suite.Root, "config", "crd"))
		harness.Eventually(t, "Packages to be served", func() error {
			_, err := harness.GetOrNil(t.Context(), x.p.Ref())
			return err
		})
		x.p.Apply(x.p.InlineBody(editedBody))
	} else {
		args = append(args, folder.Dir)
	}
	x.operator = s.LaunchOperator(args...)
	took := harness.Within(t, namedWithin, "the permission to be named", func() error {
		if err := m.works(x); err == nil {
			t.Fatalf("%s: it works without the permission", m.reason)
		}
		return m.named(x)
	})
	t.Logf("%s: named after %s", m.reason, took.Round(time.Millisecond))
	s.Patch(role, map[string]any{"rules": whole})
	took = harness.Within(t, recoveredWithin, "what needs the permission to work", func() error { return m.works(x) })
	t.Logf("it works %s after the return of the permission", took.Round(time.Millisecond))
}

// named returns nil if the permission is named where it has to be.
func (m missingOfEngine) named(x *engineCase) error {
	resource, _, _ := strings.Cut(m.resource, "/")
	says := []string{"cannot " + m.verb + " resource", resource, x.User}
	if m.condition == "" {
		for line := range harness.Lines(x.operator.Log.From(0), says[0]) {
			if harness.ContainsAll(line, says) {
				return nil
			}
		}
		return harness.ErrNotYet
	}
	u, err := harness.GetOrNil(x.T.Context(), x.p.Ref())
	if err != nil || u == nil {
		return fmt.Errorf("reading the Package: %w", err)
	}
	return harness.HasCondition(u, "Ready", "False", m.condition, says...)
}
