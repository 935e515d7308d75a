package packages

import (
	"errors"
	"testing"
	"time"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/engine/program"
	engine "operetta.dev/engine/status"
	"operetta.dev/test/inline"
)

const shopText = `package shop

import "operetta.dev/schemas/operator"

operator.#Controller
group: "shop.example"
kind:  "Shop"
versions: v1: spec: {}
components: web: objects: o: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "o"}
`

// Flux, Argo CD and kubectl wait for a Package by these rules.
func TestKstatusSeesHowFarAPackageIs(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 29, 8, 0, 0, 0, time.UTC)
	served := inline.Program(t, shopText)
	wrong := func(p problem) result { return result{problem: &p} }
	rows := map[string]struct {
		reason  string
		served  *program.Program
		result  result
		seen    int64
		deleted bool
		want    status.Status
	}{
		"served":                       {"its content is accepted and its kind is there", served, result{}, 2, false, status.CurrentStatus},
		"edited":                       {"the status is about the content before", served, result{}, 1, false, status.InProgressStatus},
		"with a status of nothing":     {"-1 is no generation", served, result{}, -1, false, status.InProgressStatus},
		"fetched":                      {"the registry has not answered yet", nil, wrong(problem{stage: reading, reason: ReasonFetching, passes: true}), 2, false, status.InProgressStatus},
		"planned":                      {"it is held until its plan is made", served, wrong(problem{stage: holding, reason: ReasonPlanning}), 2, false, status.InProgressStatus},
		"held":                         {"a person decides when it goes on", served, wrong(problem{stage: holding, reason: ReasonPaused}), 2, false, status.InProgressStatus},
		"held for a person":            {"nothing goes on before somebody acts", served, wrong(problem{stage: holding, reason: ReasonPlanning, person: true}), 2, false, status.FailedStatus},
		"refused for now":              {"it is tried again", nil, wrong(problem{stage: defining, reason: ReasonCRDNotInstalled, err: errors.New("x")}), 2, false, status.InProgressStatus},
		"broken":                       {"only another content helps", nil, wrong(problem{stage: loading, reason: ReasonBroken}), 2, false, status.FailedStatus},
		"broken beside a served one":   {"what was asked for is not served", served, wrong(problem{stage: loading, reason: ReasonBroken}), 2, false, status.FailedStatus},
		"broken, then edited":          {"the edit may be what mends it", nil, wrong(problem{stage: loading, reason: ReasonBroken}), 1, false, status.InProgressStatus},
		"deleted":                      {"it waits for its resources", served, result{waits: "2 resources"}, 2, true, status.TerminatingStatus},
		"deleted with a broken source": {"whatever is wrong, it is going", nil, wrong(problem{stage: loading, reason: ReasonBroken}), 2, true, status.TerminatingStatus},
		"that waits without deletion":  {"the API server has not stamped it yet", served, result{waits: "2 resources"}, 2, false, status.InProgressStatus},
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "shop", "generation": int64(2)}}}
			u.SetGroupVersionKind(Kind)
			if row.deleted {
				_ = unstructured.SetNestedField(u.Object, "2026-11-29T08:00:00Z", "metadata", "deletionTimestamp")
			}
			u.Object["status"] = map[string]any{
				"observedGeneration": row.seen,
				"conditions":         engine.NewConditions(nil, row.seen, now, conditions(&state{served: row.served}, &row.result)...),
			}
			got, err := status.Compute(u)
			if err != nil {
				t.Fatal(err)
			}
			if got.Status != row.want {
				t.Errorf("%s: kstatus sees %s (%q), want %s", row.reason, got.Status, got.Message, row.want)
			}
		})
	}
}
