package mutant

import (
	"os"
	"path/filepath"
	"testing"
)

func TestAPlaceIsRecordedOnceAndAllocatesNothingLater(t *testing.T) {
	file := filepath.Join(t.TempDir(), "reached")
	r := openReached(file)
	if n := testing.AllocsPerRun(100, func() { r.add(1234) }); n > 0 {
		t.Errorf("a place that is reached again allocates %v times", n)
	}
	if text, err := os.ReadFile(file); err != nil || string(text) != "1234\n" {
		t.Errorf("the file has %q: %v", text, err)
	}
}
