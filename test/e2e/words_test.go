package e2e

import (
	"strings"
	"testing"
)

func TestASecretThatIsNotThereIsSaidToBeMissing(t *testing.T) {
	t.Parallel()
	s := newEnv(t)
	s.StartOperator(fixture("postgres"))
	cr := s.sample("postgres")
	cr.Object["spec"] = map[string]any{"credentials": map[string]any{"secretName": "vault"}, "replicas": int64(0)}
	s.Create(cr.DeepCopy())
	message := s.ExpectNotReady(cr, "WaitingForRequirement", "primary: ", "vault", fixtures+"/postgres/servers.cue:")
	if strings.Contains(message, "not shown") {
		t.Errorf("that it is not there is no secret: %s", message)
	}
	// Its value is one.
	vault := s.Ref("Secret", "vault")
	vault.Object["stringData"] = map[string]any{"user": "correct-horse"}
	s.Create(vault)
	message = s.ExpectNotReady(cr, "WaitingForRequirement", "primary: ", "password")
	if strings.Contains(message, "correct-horse") {
		t.Errorf("the message has a value: %s", message)
	}
}
