package reconcile

import (
	"fmt"
	"testing"
	"time"

	"operetta.dev/engine/cluster"
	"operetta.dev/engine/rollout"
)

func TestRejectionsOfNamesThatAreNewEachTimeAreForgotten(t *testing.T) {
	t.Parallel()
	now := time.Unix(1000, 0)
	m := rejectionMemory{rejections: &rejections{}, now: func() time.Time { return now }}
	for i := range 100 {
		m.Record(rollout.Attempt{Ref: cluster.Ref{Name: fmt.Sprint("name-", i)}}, rollout.WriteFailure{})
		now = now.Add(time.Minute)
	}
	if got := len(m.by); got > 6 {
		t.Errorf("%d are remembered, want those of five minutes", got)
	}
}
