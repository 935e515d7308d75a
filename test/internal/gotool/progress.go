package gotool

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"time"
)

// Stale returns how many packages have to be compiled for some programs, or 0 if that is not known: their build says
// why. It takes a second. The command is the one that builds them, whose folder and environment count.
func Stale(ctx context.Context, build *exec.Cmd, flags, programs []string) int {
	args := append([]string{"list", "-deps", "-f", "{{if and .Stale (ne .Name `main`)}}{{.ImportPath}}{{end}}"}, flags...)
	cmd := exec.Command("go", append(args, programs...)...)
	cmd.Dir, cmd.Env = build.Dir, build.Env
	var out bytes.Buffer
	cmd.Stdout = &out
	if err := Run(ctx, cmd, 0); err != nil {
		return 0
	}
	return len(bytes.Fields(out.Bytes()))
}

// Count says how many packages were compiled, and of how many, if that is known.
func Count(compiled, stale int) string {
	if stale == 0 {
		return fmt.Sprintf("%d packages compiled", compiled)
	}
	return fmt.Sprintf("%d of %d packages compiled", min(compiled, stale), stale)
}

// Done is Count with the share of it, and about how long the rest takes if it goes on as it did, once enough was
// compiled to tell. Linking comes last and is no package, so there is always something left.
func Done(took time.Duration, compiled, stale int) string {
	const enough = 20 // one of so many packages
	if compiled == 0 || compiled < stale/enough || stale == 0 {
		return Count(compiled, stale)
	}
	done := min(float64(compiled)/float64(stale), 0.99)
	left := time.Duration(float64(took) * (1/done - 1))
	return fmt.Sprintf("%d %%, about %d min left: %s", int(100*done), max(1, int((left+time.Minute-1)/time.Minute)), Count(compiled, stale))
}
