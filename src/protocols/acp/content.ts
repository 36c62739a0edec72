/**
 * The content of prompts and messages: from an editor's blocks to parts for a model, and back. Pure.
 */
import type { ContentBlock } from "@agentclientprotocol/sdk"
import { Either } from "effect"
import { InvalidRequest } from "../../domain/failure.ts"
import { text, type UserPart } from "../../domain/message.ts"

/** Base64 with its padding. */
const base64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/

const invalid = (path: string, expected: string, actual: string) =>
  Either.left(new InvalidRequest({ path, expected, actual }))

const escaped = (value: string): string => value.replace(/[&<"]/g, (char) => `&#${char.charCodeAt(0)};`)

const image = (path: string, mediaType: string, data: string): Either.Either<UserPart, InvalidRequest> => {
  if (!/^image\/[\w.+-]+$/.test(mediaType)) {
    return invalid(`${path}.mimeType`, 'a media type such as "image/png"', JSON.stringify(mediaType.slice(0, 60)))
  }
  return data !== "" && base64.test(data)
    ? Either.right({ type: "image", mediaType, data })
    : invalid(`${path}.data`, "the image in base64", data === "" ? "nothing" : "other text")
}

/** One block as the model gets it. A link is named, not followed: the model reads what it needs. */
const part = (block: ContentBlock, path: string): Either.Either<UserPart, InvalidRequest> => {
  switch (block.type) {
    case "text":
      return Either.right(text(block.text))
    case "image":
      return image(path, block.mimeType, block.data)
    case "audio":
      return invalid(`${path}.type`, "text, image, resource or resource_link", '"audio"')
    case "resource_link": {
      const about = block.description ?? block.title ?? null
      const where = `[${block.name}](${block.uri})`
      return Either.right(text(about === null ? where : `${where}: ${about}`))
    }
    case "resource": {
      const { resource } = block
      if ("text" in resource) {
        return Either.right(text(`<resource uri="${escaped(resource.uri)}">\n${resource.text}\n</resource>`))
      }
      const mediaType = resource.mimeType ?? ""
      if (mediaType.startsWith("image/")) return image(`${path}.resource`, mediaType, resource.blob)
      return invalid(`${path}.resource`, "text or an image", `a blob of type ${JSON.stringify(mediaType.slice(0, 60))}`)
    }
  }
}

/** What a prompt says to the model. */
export const promptParts = (
  blocks: ReadonlyArray<ContentBlock>,
): Either.Either<ReadonlyArray<UserPart>, InvalidRequest> => {
  const parts: Array<UserPart> = []
  for (const [index, block] of blocks.entries()) {
    const read = part(block, `prompt[${index}]`)
    if (Either.isLeft(read)) return Either.left(read.left)
    parts.push(read.right)
  }
  const says = parts.some((one) => one.type === "image" || one.text.trim() !== "")
  return says ? Either.right(parts) : invalid("prompt", "a text that is not empty, or an image", "neither")
}

/** A part of a message as an editor shows it. */
export const blockOf = (one: UserPart): ContentBlock =>
  one.type === "text" ? { type: "text", text: one.text } : { type: "image", data: one.data, mimeType: one.mediaType }
