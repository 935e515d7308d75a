package controlplane

const (
	auditPolicyFile = "audit-policy.json"
	auditLogFile    = "audit.log"
	auditPolicy     = `{"apiVersion":"audit.k8s.io/v1","kind":"Policy","rules":[{"level":"Metadata"}]}`
)
