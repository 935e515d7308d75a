package object

import "k8s.io/apimachinery/pkg/runtime/schema"

// SecretKind is the kind of a Secret.
const SecretKind = "Secret"

// IsSecret reports whether a kind is the Secret of Kubernetes, in any version. What is done to Secrets because the API
// server does the same to them goes by it; what is hidden goes by [MayBeSecret].
func IsSecret(kind schema.GroupKind) bool { return kind == schema.GroupKind{Kind: SecretKind} }

// MayBeSecret reports whether an object of a kind may be a Secret, so that its content has to be hidden. A kind that is
// not known yet may turn out to be one, and so may a Secret whose apiVersion is malformed or not known yet, so the API
// group does not count.
func MayBeSecret(kind string) bool { return kind == "" || kind == SecretKind }

// MayBeSecretIn is MayBeSecret for the content of an object.
func MayBeSecretIn(content map[string]any) bool {
	kind, _ := content["kind"].(string)
	return MayBeSecret(kind)
}
