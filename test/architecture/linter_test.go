package architecture

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

// A rule is one of depguard, in .golangci.yml.
type rule struct {
	Files []string `json:"files"`
	Deny  []struct {
		Package string `json:"pkg"`
	} `json:"deny"`
}

func (r rule) denied() []string {
	var out []string
	for _, d := range r.Deny {
		out = append(out, d.Package)
	}
	return out
}

func TestTheLinterHasTheSameRulesOfImports(t *testing.T) {
	content, err := os.ReadFile(filepath.Join(root, ".golangci.yml"))
	if err != nil {
		t.Fatal(err)
	}
	var config struct {
		Linters struct {
			Settings struct {
				Depguard struct {
					Rules map[string]rule `json:"rules"`
				} `json:"depguard"`
			} `json:"settings"`
		} `json:"linters"`
	}
	if err := yaml.Unmarshal(content, &config); err != nil {
		t.Fatal(err)
	}
	rules := config.Linters.Settings.Depguard.Rules
	for i, layer := range layers[:len(layers)-1] {
		expectRule(t, rules, "below-"+layer[0], layerFiles(i), layerPackages(layer))
	}
	for name, r := range map[string]restriction{"commands": restrictions[0], "tests": restrictions[1], "controllers": restrictions[2], "clients": restrictions[3]} {
		expectRule(t, rules, name, r.files(), r.packages)
	}
}

func expectRule(t *testing.T, rules map[string]rule, name string, files, denied []string) {
	t.Helper()
	if diff := cmp.Diff(files, rules[name].Files); diff != "" {
		t.Errorf(".golangci.yml: files of the depguard rule %s (-want +got):\n%s", name, diff)
	}
	if diff := cmp.Diff(denied, rules[name].denied()); diff != "" {
		t.Errorf(".golangci.yml: packages of the depguard rule %s (-want +got):\n%s", name, diff)
	}
}

// layerFiles are the files that are below a layer.
func layerFiles(layer int) []string {
	out := []string{"**/engine/**"}
	for _, name := range slices.Concat(layers[:layer+1]...) {
		out = append(out, "!**/engine/"+name+"/**")
	}
	return append(out, "!$test")
}

func layerPackages(layer []string) []string {
	var out []string
	for _, name := range layer {
		out = append(out, module+"/engine/"+name)
	}
	return out
}

// files are the files that a restriction is about.
func (r restriction) files() []string {
	var out []string
	for _, dir := range r.within {
		out = append(out, "**/"+dir+"/**")
	}
	for _, dir := range r.allowed {
		out = append(out, "!**/"+dir+"/**")
	}
	return append(out, "!$test")
}
