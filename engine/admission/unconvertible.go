package admission

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/engine/fault"
	"operetta.dev/engine/program"
)

// unconvertible returns why a resource could not be read in another served version. An API server would fail every
// list of that version because of it, for all users, so it must not be stored. It errors if the package could not be
// evaluated.
func (c *change) unconvertible(ctx context.Context, u *unstructured.Unstructured) (fault.Faults, error) {
	for _, version := range c.Converts() {
		_, err := c.ConvertContext(ctx, program.Conversion{
			Namespace: u.GetNamespace(), Name: u.GetName(), From: u.GroupVersionKind().Version, To: version, Spec: u.Object["spec"],
		})
		if err == nil {
			continue
		}
		faults, err := conversionFaults(err)
		if err != nil {
			return nil, fmt.Errorf("converting it to version %s: %w", version, err)
		}
		for i, f := range faults {
			faults[i].Message = fmt.Sprintf("version %s of it could not be read: %s", version, f.Message)
		}
		return faults, nil
	}
	return nil, nil
}

// conversionFaults returns what the error of a conversion says about the resource. It returns the error if that is
// about something else.
func conversionFaults(err error) (fault.Faults, error) {
	if limit, over := errors.AsType[*program.LimitError](err); over {
		return fault.Faults{{Path: "spec", Message: limit.Text}}, nil
	}
	if _, panicked := errors.AsType[*program.PanicError](err); panicked {
		return fault.Faults{{Path: "spec", Message: "its conversion panics"}}, nil
	}
	if faults, are := errors.AsType[fault.Faults](err); are {
		return append(fault.Faults(nil), faults...), nil
	}
	return nil, err
}
