package e2e

import (
	"context"
	"os/exec"
	"path/filepath"
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
			cmd := exec.CommandContext(ctx, harness.Suite.Operetta, "render", dir, "-f", filepath.Join(dir, "sample.yaml"))
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
