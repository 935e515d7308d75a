package e2e

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"operetta.dev/test/harness"
)

// TestNoSampleIsToldOfFilesThatItsAuthorDoesNotHave renders each sample, and expects every message to
// name a file of the package, also for values of a loop or template.
func TestNoSampleIsToldOfFilesThatItsAuthorDoesNotHave(t *testing.T) {
	t.Parallel()
	for _, dir := range allFixtures() {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), harness.Timeout)
			defer cancel()
			cmd := exec.CommandContext(ctx, harness.Suite.Operetta, "render", dir, "-f", sampleWithDefinitions(t, dir))
			cmd.Dir = harness.Suite.Root
			var said strings.Builder
			cmd.Stderr = &said
			if err := cmd.Run(); err != nil {
				t.Fatalf("rendering the sample: %v: %s", err, said.String())
			}
			for _, wrong := range []string{"schemas/operator", "invalid interpolation"} {
				for line := range harness.Lines(said.String(), wrong) {
					t.Errorf("%s", line)
				}
			}
		})
	}
}

// sampleWithDefinitions returns a file with the sample of a package and the definitions of all kinds, as
// some packages render resources of others.
func sampleWithDefinitions(t *testing.T, dir string) string {
	t.Helper()
	sample, err := os.ReadFile(filepath.Join(dir, "sample.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), harness.Suite.Operetta, append([]string{"crd"}, allFixtures()...)...)
	cmd.Dir = harness.Suite.Root
	definitions, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "sample.yaml")
	if err := os.WriteFile(file, slices.Concat(sample, []byte("\n---\n"), definitions), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}
