// Package config reads the configuration of Caisson's programs into one struct.
//
// What it guarantees:
//
//   - One order of precedence, the same for every key: defaults, then the file, then CAISSON_* variables, then flags. Each level
//     reaches every key, however deep, whether or not a lower level mentions it. A list is replaced, never merged.
//   - Nothing is guessed. An unknown key, a key given twice, a duration without a unit, a number out of range, or a truth value
//     where a name belongs is refused. All faults are reported at once, each with its key, its value and the way out.
//   - An empty variable is the same as none. A CAISSON_* variable that matches no key is a [Warning] that names the nearest one.
//   - A [Secret] shows itself to nobody who does not call Reveal: not in errors, logs, JSON, YAML or [Print].
//   - [Config.Settings] says for each key where its value came from.
//
// [Load] does all of it. The struct's tags are the single source of keys, defaults and descriptions: [Keys] lists
// them for docs/configuration.md.
package config
