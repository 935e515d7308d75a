package metrics_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	dto "github.com/prometheus/client_model/go"
	"k8s.io/apimachinery/pkg/types"
	"operetta.dev/engine/controller/metrics"
	"operetta.dev/engine/history"
	"operetta.dev/engine/status"
)

// began is when the components of these tests began to wait.
var began = time.Unix(1_700_000_000, 0)

func key(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: "team", Name: name}
}

// waitingFor returns the summary of a resource with a component that waits.
func waitingFor(component string, since time.Time) status.Summary {
	return status.Summary{Phase: status.PhaseWaiting, Digest: "sha256:1", Components: []status.ComponentSummary{
		{Name: "config", State: status.Verified, Reason: status.ReasonVerified},
		{Name: component, State: status.Waiting, Reason: status.ReasonDependency, Since: since},
	}}
}

func TestW48W49W50W51ReconcilesAreCountedByControllerAndResult(t *testing.T) {
	t.Parallel()
	m := metrics.New()
	shops, mills := m.Controller("shops"), m.Controller("mills")
	shops.Reconciled(history.Success, time.Millisecond)
	shops.Reconciled(history.Error, time.Second)
	shops.Reconciled(history.Error, time.Second)
	mills.Reconciled(history.RequeueAfter, time.Second)
	expect(t, m, `
# HELP reconcile_errors_total Reconciles of custom resources that ended with an error, and are tried again with backoff.
# TYPE reconcile_errors_total counter
reconcile_errors_total{controller="mills"} 0
reconcile_errors_total{controller="shops"} 2
# HELP reconcile_total Reconciles of custom resources, by result: success, requeue_after or error.
# TYPE reconcile_total counter
reconcile_total{controller="mills",result="requeue_after"} 1
reconcile_total{controller="shops",result="error"} 2
reconcile_total{controller="shops",result="success"} 1
`, "reconcile_total", "reconcile_errors_total")
	shops.Remove()
	if got := testutil.CollectAndCount(m, "reconcile_duration_seconds"); got != 1 {
		t.Errorf("%d series of durations are left, want that of mills", got)
	}
}

// expect compares some metrics with a scrape.
func expect(t *testing.T, m prometheus.Collector, want string, names ...string) {
	t.Helper()
	if err := testutil.CollectAndCompare(m, strings.NewReader(want), names...); err != nil {
		t.Error(err)
	}
}

func TestACanaryIsCountedUntilItHasEnded(t *testing.T) {
	t.Parallel()
	m := metrics.New()
	m.Canary("shops", 5, 2)
	expect(t, m, `
# HELP operetta_package_canary_resources Custom resources that have the content of a canary, by whether they are ready, while it is in progress.
# TYPE operetta_package_canary_resources gauge
operetta_package_canary_resources{package="shops",ready="false"} 3
operetta_package_canary_resources{package="shops",ready="true"} 2
`, "operetta_package_canary_resources")
	m.CanaryEnded("shops", "RolledBack")
	m.NoCanary("shops")
	expect(t, m, `
# HELP operetta_package_canaries_total Canaries of a Package that have ended, by phase: Promoted or RolledBack.
# TYPE operetta_package_canaries_total counter
operetta_package_canaries_total{package="shops",phase="RolledBack"} 1
`, "operetta_package_canary_resources", "operetta_package_canaries_total")
}

func TestAPackageIsCountedUntilItIsGone(t *testing.T) {
	t.Parallel()
	const help = "\n# HELP operetta_packages Packages by the status and the reason of their condition Ready.\n# TYPE operetta_packages gauge\n"
	m := metrics.New()
	m.Package("shops", "False", "Invalid")
	m.Package("teams", "True", "Served")
	m.Package("shops", "True", "Served") // the last one counts
	expect(t, m, help+`operetta_packages{package="shops",ready="True",reason="Served"} 1
operetta_packages{package="teams",ready="True",reason="Served"} 1
`, "operetta_packages")
	m.NoPackage("shops")
	expect(t, m, help+`operetta_packages{package="teams",ready="True",reason="Served"} 1
`, "operetta_packages")
}

func TestF36K48ResourcesAreCountedUntilTheyAreGone(t *testing.T) {
	t.Parallel()
	m := metrics.New()
	c := m.Controller("shops")
	c.Parked(func() int { return 3 })
	c.Refused(func() []string { return []string{"team-a"} })
	c.Observe(key("a"), status.Summary{Phase: status.PhaseReady})
	c.Observe(key("a"), waitingFor("web", began)) // the last one counts
	c.Observe(key("b"), status.Summary{Phase: status.PhaseReady, Paused: true, Digest: "sha256:2"})
	expect(t, m, `
# HELP operetta_component_waiting_since_timestamp_seconds When a component that is not done came into its state, in seconds since 1970, for those of a controller that have waited longest.
# TYPE operetta_component_waiting_since_timestamp_seconds gauge
operetta_component_waiting_since_timestamp_seconds{component="web",controller="shops",name="a",namespace="team",reason="WaitingForDependency",state="Waiting"} 1.7e+09
# HELP operetta_components Components of all custom resources of a kind, by name and state.
# TYPE operetta_components gauge
operetta_components{component="config",controller="shops",state="Verified"} 1
operetta_components{component="web",controller="shops",state="Waiting"} 1
# HELP operetta_namespaces_refused 1 for each namespace in which the operator may not list or watch the custom resources, so that it serves none of them; the namespace is empty for all.
# TYPE operetta_namespaces_refused gauge
operetta_namespaces_refused{controller="shops",namespace="team-a"} 1
# HELP operetta_resources Custom resources, by phase; it is empty for one that has none.
# TYPE operetta_resources gauge
operetta_resources{controller="shops",phase="Created"} 0
operetta_resources{controller="shops",phase="Deleting"} 0
operetta_resources{controller="shops",phase="Failed"} 0
operetta_resources{controller="shops",phase="Ready"} 1
operetta_resources{controller="shops",phase="Reconciling"} 0
operetta_resources{controller="shops",phase="Scaling"} 0
operetta_resources{controller="shops",phase="Waiting"} 1
# HELP operetta_resources_by_package_digest Custom resources, by the version of the package that they were last reconciled with.
# TYPE operetta_resources_by_package_digest gauge
operetta_resources_by_package_digest{controller="shops",digest="sha256:1"} 1
operetta_resources_by_package_digest{controller="shops",digest="sha256:2"} 1
# HELP operetta_resources_paused Custom resources that a person has paused.
# TYPE operetta_resources_paused gauge
operetta_resources_paused{controller="shops"} 1
# HELP operetta_workqueue_parked Requests that wait beside the queue until slow or suspect resources may have a worker; workqueue_depth does not count them.
# TYPE operetta_workqueue_parked gauge
operetta_workqueue_parked{controller="shops"} 3
`, "operetta_component_waiting_since_timestamp_seconds", "operetta_components", "operetta_namespaces_refused", "operetta_resources", "operetta_resources_by_package_digest",
		"operetta_resources_paused", "operetta_workqueue_parked")
	c.Gone(key("a"))
	c.Gone(key("never there"))
	if got := testutil.CollectAndCount(m, "operetta_components", "operetta_component_waiting_since_timestamp_seconds"); got != 0 {
		t.Errorf("%d series are left of a resource that is gone", got)
	}
	c.Remove()
	if got := testutil.CollectAndCount(m); got != 0 {
		t.Errorf("%d series are left of a controller that is gone", got)
	}
}

// gathered returns the series of one metric as they are scraped.
func gathered(t *testing.T, m prometheus.Collector, name string) []*dto.Metric {
	t.Helper()
	r := prometheus.NewRegistry()
	r.MustRegister(m)
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == name {
			return f.GetMetric()
		}
	}
	return nil
}

func label(m *dto.Metric, name string) string {
	for _, l := range m.GetLabel() {
		if l.GetName() == name {
			return l.GetValue()
		}
	}
	return ""
}

func TestAScrapeIsBoundedWhateverUsersCreate(t *testing.T) {
	t.Parallel()
	const many = 20_000
	m := metrics.New()
	c := m.Controller("shops")
	for i := range many {
		found := waitingFor(fmt.Sprintf("c%d", i), began.Add(time.Duration(many-i)*time.Second))
		found.Digest = fmt.Sprintf("sha256:%d", i)
		c.Observe(key(fmt.Sprintf("r%05d", i)), found)
	}
	if got := testutil.CollectAndCount(m); got > 500 {
		t.Errorf("%d series for %d resources", got, many)
	}
	waiting := gathered(t, m, "operetta_component_waiting_since_timestamp_seconds")
	for _, w := range waiting {
		if label(w, "name") < fmt.Sprintf("r%05d", many-50) {
			t.Errorf("%s is named, and others have waited for longer", label(w, "name"))
		}
	}
	if len(waiting) != 50 {
		t.Errorf("%d components are named, want the 50 that have waited longest", len(waiting))
	}
	total := 0.0
	for _, s := range gathered(t, m, "operetta_components") {
		total += s.GetGauge().GetValue()
	}
	if total != 2*many {
		t.Errorf("%v components are counted, want all %d", total, 2*many)
	}
}

func TestAComponentThatComesLaterGetsThePlaceOfOneThatIsGone(t *testing.T) {
	t.Parallel()
	m := metrics.New()
	c := m.Controller("shops")
	for i := range 100 {
		c.Observe(key(fmt.Sprint(i)), waitingFor(fmt.Sprintf("c%d", i), began))
	}
	named := func(component string) bool {
		for _, s := range gathered(t, m, "operetta_components") {
			if label(s, "component") == component {
				return true
			}
		}
		return false
	}
	c.Observe(key("late"), waitingFor("late", began))
	if named("c99") && named("late") && named("config") {
		t.Error("102 components are named")
	}
	for i := range 100 {
		c.Gone(key(fmt.Sprint(i)))
	}
	if !named("late") {
		t.Error("a component is not named although there is room")
	}
}

func TestWhatAForgedStatusSaysBreaksNoScrape(t *testing.T) {
	t.Parallel()
	m := metrics.New()
	c := m.Controller("shops")
	huge := strings.Repeat("x", 1<<20)
	c.Observe(key("forged"), status.Summarize(map[string]any{
		"phase": huge, "package": map[string]any{"digest": huge},
		"components": []any{
			map[string]any{"name": "bad\xff", "state": "Waiting", "reason": huge, "since": "2026-01-01T00:00:00Z"},
			map[string]any{"name": huge, "state": "Waiting", "reason": "x", "since": "2026-01-01T00:00:00Z"},
			map[string]any{"name": huge + "y", "state": "Waiting", "reason": "x", "since": "2026-01-01T00:00:00Z"},
			map[string]any{"name": "unknown", "state": huge}, "no component",
		},
	}))
	for _, name := range []string{"operetta_resources", "operetta_components", "operetta_component_waiting_since_timestamp_seconds", "operetta_resources_by_package_digest"} {
		for _, s := range gathered(t, m, name) {
			for _, l := range s.GetLabel() {
				if len(l.GetValue()) > 300 {
					t.Errorf("label %s of %s has %d bytes", l.GetName(), name, len(l.GetValue()))
				}
			}
		}
	}
	if got := len(gathered(t, m, "operetta_components")); got != 2 {
		t.Errorf("%d components, want those with a state that there is", got)
	}
}

// answers is an API server that answers everything the same, or does not.
type answers struct{ code int }

// RoundTrip implements http.RoundTripper.
func (a answers) RoundTrip(*http.Request) (*http.Response, error) {
	if a.code == 0 {
		return nil, io.ErrUnexpectedEOF
	}
	return &http.Response{StatusCode: a.code, Body: http.NoBody}, nil
}

func TestRequestsAreCountedByWhatTheyDo(t *testing.T) {
	t.Parallel()
	rows := []struct {
		reason, method, path, contentType string
		code                              int
		want                              metrics.Request
		series                            string
	}{
		{
			reason: "one object of the core", method: "GET", path: "/api/v1/namespaces/team/configmaps/a", code: 404,
			want: metrics.Request{Verb: "get", Resource: "configmaps", Namespace: "team", Name: "a"}, series: `404,configmaps,get`,
		},
		{
			reason: "a list of all namespaces", method: "GET", path: "/apis/apps/v1/deployments?limit=500", code: 200,
			want: metrics.Request{Verb: "list", Resource: "deployments.apps"}, series: `200,deployments.apps,list`,
		},
		{
			reason: "a watch", method: "GET", path: "/apis/apps/v1/namespaces/team/deployments?watch=true", code: 200,
			want: metrics.Request{Verb: "watch", Resource: "deployments.apps", Namespace: "team"}, series: `200,deployments.apps,watch`,
		},
		{
			reason: "a status by server-side apply", method: "PATCH", path: "/apis/example.com/v1/namespaces/team/shops/s/status", contentType: "application/apply-patch+yaml", code: 200,
			want: metrics.Request{Verb: "apply", Resource: "shops.example.com/status", Namespace: "team", Name: "s"}, series: `200,shops.example.com/status,apply`,
		},
		{
			reason: "a namespace itself", method: "DELETE", path: "/api/v1/namespaces/team", code: 0,
			want: metrics.Request{Verb: "delete", Resource: "namespaces", Name: "team"}, series: `error,namespaces,delete`,
		},
		{
			reason: "a prefix, as of a proxy", method: "POST", path: "/k8s/clusters/c1/api/v1/namespaces/team/events", code: 201,
			want: metrics.Request{Verb: "create", Resource: "events", Namespace: "team"}, series: `201,events,create`,
		},
		{
			reason: "discovery", method: "GET", path: "/apis", code: 200,
			want: metrics.Request{Verb: "get"}, series: `200,,get`,
		},
	}
	for _, row := range rows {
		t.Run(row.reason, func(t *testing.T) {
			t.Parallel()
			m := metrics.New()
			req, err := http.NewRequestWithContext(t.Context(), row.method, "https://cluster"+row.path, nil)
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Content-Type", row.contentType)
			if diff := cmp.Diff(row.want, metrics.RequestOf(req)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			resp, err := m.Requests(answers{row.code}).RoundTrip(req)
			if err == nil {
				_ = resp.Body.Close()
			}
			counted := gathered(t, m, "operetta_api_requests_total")
			if len(counted) != 1 {
				t.Fatalf("%d series", len(counted))
			}
			got := strings.Join([]string{label(counted[0], "code"), label(counted[0], "resource"), label(counted[0], "verb")}, ",")
			if got != row.series {
				t.Errorf("counted as %s, want %s", got, row.series)
			}
		})
	}
}
