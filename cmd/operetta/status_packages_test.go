package main

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestStatusSaysHowFarCanariesAre(t *testing.T) {
	t.Parallel()
	const digest = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	for name, row := range map[string]struct {
		reason string
		canary map[string]any
		want   string
	}{
		"none":        {"there is nothing to say", nil, ""},
		"in progress": {"it is counted", map[string]any{"digest": digest, "phase": "Progressing", "ready": int64(2), "resources": int64(3)}, "package/greeting  canary of " + shortDigest(digest) + " Progressing: 2 of 3 resources are ready"},
		"gone back":   {"a person has to look", map[string]any{"digest": digest, "phase": "RolledBack", "why": "1 resource\nhas failed"}, "package/greeting  canary of " + shortDigest(digest) + " RolledBack: 1 resource has failed"},
		"promoted":    {"all is well", map[string]any{"digest": digest, "phase": "Promoted"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "greeting"}}}
			if row.canary != nil {
				u.Object["status"] = map[string]any{"canary": row.canary}
			}
			if got := canaryLine(u); got != row.want {
				t.Errorf("%s: %q, want %q", row.reason, got, row.want)
			}
		})
	}
}
