package render

import (
	"errors"

	"operetta.dev/engine/program"
)

// refuse makes components invalid that have an object where a resource of a namespace may
// have none, as a cluster would.
func refuse(reach program.Reach, namespace string, components []program.Component) {
	for i := range components {
		c := &components[i]
		for _, o := range c.Objects {
			if o.Manifest == nil {
				continue
			}
			id := IdentityOf(o.Manifest).in(namespace)
			if beyond, is := errors.AsType[*program.OutOfReachError](reach.MayOwn(namespace, id.GroupKind, id.Namespace)); is {
				c.Rendering = program.RenderedInvalid
				c.Faults = append(c.Faults, program.Fault{
					Position: o.Position, Path: objectPath(c.Name, o.Name), Message: beyond.Where(), Hint: "write " + beyond.Hint() + " to allow it",
				})
			}
		}
	}
}
