package ownership

import (
	"encoding/hex"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/engine/program"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// SaltAnnotation is on a Secret, and has the key of its digests. More people may read the
// status, which has the digests, than the Secret.
const SaltAnnotation = program.SaltAnnotation

// SaltOf returns the salt that the engine has given a live object, or "". A salt that somebody
// else wrote or changed does not count: with a known salt, the digest lets one guess the content.
func SaltOf(live *unstructured.Unstructured) string {
	if live == nil {
		return ""
	}
	salt := live.GetAnnotations()[SaltAnnotation]
	if _, err := hex.DecodeString(salt); err != nil || len(salt) != len(program.FixedSalt) {
		return ""
	}
	owned := ownedFields(live, metav1.ManagedFieldsOperationApply, metav1.ManagedFieldsOperationUpdate)
	if owned == nil || !owned.Has(fieldpath.MakePathOrDie("metadata", "annotations", SaltAnnotation)) {
		return ""
	}
	return salt
}
