package program

// A Reach is where the objects of a custom resource may be.
type Reach string

// The reaches.
const (
	// OwnNamespace is the namespace of the custom resource; one that is
	// cluster-scoped has no namespace, and may own objects anywhere.
	OwnNamespace Reach = "OwnNamespace"
	// Anywhere includes other namespaces and objects without one.
	Anywhere Reach = "Anywhere"
)

// Reach returns where the package says that objects may be.
func (p *Program) Reach() Reach {
	if boolAt(p.static, "clusterScoped", false) {
		return Anywhere
	}
	return OwnNamespace
}
