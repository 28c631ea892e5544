#!/bin/bash
# Plays a container engine for scripts/test-image.mjs. Of the rules in the folder PLAY, the first whose pattern matches the
# words of the command says what is printed, and whether it fails. Every command is noted.
shopt -s nullglob
printf '%s\0' "$*" >> "$PLAY/commands"
for rule in "$PLAY"/rules/*; do
  IFS= read -r pattern < "$rule/on"
  [[ $* =~ $pattern ]] || continue
  [ -e "$rule/fails" ] || exec cat "$rule/says"
  cat "$rule/says" >&2
  exit 1
done
echo
