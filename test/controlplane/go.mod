module operetta.dev/test/controlplane

go 1.26.0
