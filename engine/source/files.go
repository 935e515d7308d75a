package source

import "errors"

// maxFileName bounds the name of a file, in bytes: each folder in it is looked at.
const maxFileName = 500

// Files returns a snapshot of the package in the root of a module that is given as the texts of its files.
// origin says where they are from; see Origin. It errors like Folder, and if a name is not that of a file
// within the module.
func Files(name, origin string, files map[string]string) (*Snapshot, error) {
	s, err := Loader{}.Files(name, origin, ".", files)
	if errors.Is(err, ErrNoFiles) {
		return nil, ErrNoFiles
	}
	return s, err
}
