package program_test

import (
	"io/fs"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"operetta.dev/engine/program"
	"operetta.dev/schemas"
	"operetta.dev/test/inline"
)

// definitionsOfHealth returns the names of the definitions of package health.
func definitionsOfHealth(t *testing.T) []string {
	t.Helper()
	files, err := fs.Glob(schemas.Full(), "schemas/health/*.cue")
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, file := range files {
		data, err := fs.ReadFile(schemas.Full(), file)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range regexp.MustCompile(`(?m)^#(\w+):`).FindAllStringSubmatch(string(data), -1) {
			names[found[1]] = true
		}
	}
	if len(names) < 10 {
		t.Fatalf("the definitions are %v", names)
	}
	return slices.Sorted(maps.Keys(names))
}

// workloads are objects of many kinds in one, as JSON.
var workloads = []string{
	``, `{}`, `{"kind": "X", "metadata": {"name": "d"}}`, `{"kind": "X", "metadata": {"name": ""}, "status": {}}`,
	`{"kind": "X", "metadata": "d", "spec": [], "status": 1}`,
	`{"kind": "X", "metadata": {"name": "d", "generation": 2}, "spec": {"replicas": 2, "type": "LoadBalancer"}, "status": {"observedGeneration": 2, "phase": "Running", "replicas": 2, "updatedReplicas": 2,
		"availableReplicas": 2, "desiredNumberScheduled": 2, "updatedNumberScheduled": 2, "numberAvailable": 2, "loadBalancer": {"ingress": [{"ip": "1"}]},
		"conditions": [{"type": "Ready", "status": "True"}, {"type": "Complete", "status": "True", "message": "m"}, {"type": "AbleToScale", "status": "True"}, {"type": "ScalingActive", "status": "True"}]}}`,
	`{"kind": "X", "metadata": {"name": "d", "generation": 2}, "spec": {"updateStrategy": {"type": "OnDelete"}, "externalIPs": ["1"], "replicas": 5}, "status": {"observedGeneration": 1, "phase": "Lost",
		"conditions": [{"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded"}, {"type": "Ready", "status": "True", "observedGeneration": 2}, {"type": "ScalingActive", "status": "False", "reason": "ScalingDisabled"}]}}`,
	`{"kind": "X", "metadata": {"name": "d", "generation": 1}, "status": {"observedGeneration": 1, "phase": "Bound", "conditions": [{"type": "Resizing", "status": "True"}, {"reason": 1}, "odd", {"type": {}, "status": []}]}}`,
	`{"kind": "X", "metadata": {"name": "d", "generation": "1"}, "spec": {"replicas": "x"}, "status": {"observedGeneration": "never", "replicas": [], "conditions": {"a": {"type": "Ready", "status": "True"}}}}`,
	`{"kind": "X", "metadata": {"name": 5, "generation": 1.5}, "status": {"phase": "Failed", "conditions": [[], {"type": "Failed", "status": "True"}], "loadBalancer": {"ingress": "x"}}}`,
}

// Of an object that is handed to a definition, an evaluation needs no more than the definition reads. So what an API server
// changes with every write costs none.
func TestOfAnArgumentOnlyWhatTheDefinitionReadsIsPartOfTheView(t *testing.T) {
	t.Parallel()
	for _, name := range definitionsOfHealth(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			of := "(health.#" + name + " & {object: live.web.d"
			if name == "Condition" {
				of += ", type: \"Ready\""
			}
			of += "})"
			text := strings.Replace(head, "import ", "import \"operetta.dev/schemas/health\"\nimport ", 1) +
				"status: r: " + of + ".ready\ncomponents: web: {objects: d: {apiVersion: \"v1\", kind: \"ConfigMap\", metadata: name: \"d\"}, verify: " + of + ".checks}\n"
			if slices.Contains([]string{"Deployment", "Job", "Pod", "PersistentVolumeClaim"}, name) {
				text += "components: web: failed: f: " + of + ".failed\n"
			}
			p := inline.Program(t, text)
			view := func(object string, change func(object map[string]any)) (program.Session, string) {
				s := session(t, `{}`, `{}`)
				if object != "" {
					inline.Decode(t, `{"web": {"d": `+object+`}}`, &s.Live)
					change(s.Live["web"]["d"])
				}
				key := p.Views().Of(s).Whole()
				return s, string(key[:])
			}
			for _, object := range workloads {
				s, first := view(object, func(map[string]any) {})
				if diff := cmp.Diff(saying(t, p.Unprojected(), s), saying(t, p, s)); diff != "" {
					t.Errorf("%s (-all +view):\n%s", object, diff)
				}
				if _, second := view(object, written); second != first {
					t.Errorf("%s: what a write changes is part of the view %v", object, p.Views().Of(s).Seen())
				}
			}
		})
	}
}

// written changes what an API server and controllers write again and again.
func written(object map[string]any) {
	object["other"] = "x"
	meta, ok := object["metadata"].(map[string]any)
	if !ok {
		return
	}
	meta["resourceVersion"], meta["labels"], meta["annotations"] = "9", map[string]any{"a": "b"}, map[string]any{"c": "d"}
	status, _ := object["status"].(map[string]any)
	conditions, _ := status["conditions"].([]any)
	for _, c := range conditions {
		if c, ok := c.(map[string]any); ok {
			c["lastUpdateTime"], c["message"] = "2020", "another"
		}
	}
}
